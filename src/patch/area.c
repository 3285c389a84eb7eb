/* SPDX-License-Identifier: MIT */
/* Layout of the engine's memory: pure but for the CPU's features. */
#include "patch/area.h"

#include <cpuid.h>
#include <string.h>

#include "engine/frames.h"
#include "engine/signal.h"

void area_layout(struct ukp_priv *priv, struct ukp_objpool *pool, uint32_t nr_instances)
{
	uint64_t pool_size = ukp_objpool_size(nr_instances, AREA_SHARDS);

	memset(priv, 0, sizeof(*priv));
	memset(pool, 0, sizeof(*pool));
	priv->alive = 1;
	priv->off_pool = area_page_up(sizeof(*priv));
	priv->off_instances = priv->off_pool + area_page_up(pool_size);
	priv->size = priv->off_instances +
	             area_page_up((uint64_t)nr_instances * sizeof(struct ukp_instance));
	pool->n = nr_instances;
	pool->nr_shards = AREA_SHARDS;
	pool->off_next = sizeof(*pool) + AREA_SHARDS * sizeof(pool->shards[0]);
}

void area_frames(struct ukp_priv *priv, struct ukp_frames *t, uint32_t nr_frames)
{
	memset(t, 0, sizeof(*t));
	ukp_frames_init(t, nr_frames);
	priv->off_frames = priv->size;
	priv->size += area_page_up(ukp_frames_size(nr_frames));
}

#define DUMPED_CTL (2u << 20)       /* some thousand sites */
#define DUMPED_INSTANCES (1u << 20) /* bytes of them */

void area_left_out(const struct ukp_priv *priv, struct area_piece out[AREA_LEFT_OUT])
{
	const uint64_t rest = priv->off_instances + DUMPED_INSTANCES;

	out[0] = (struct area_piece){ false, DUMPED_CTL, UKP_CTL_SIZE - DUMPED_CTL };
	out[1] = (struct area_piece){ true, priv->off_pool, priv->off_instances - priv->off_pool };
	out[2] = (struct area_piece){ true, rest, priv->size - rest };
}

void area_stubs(unsigned char *buf, uint64_t return_entry)
{
	static const unsigned char way_out[] = { 0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0xcc, 0xcc };
	static const unsigned char stub[UKP_STUB_SIZE] = {
		0x48, 0x8d, 0x64, 0x24, 0x78, /* lea 120(%rsp),%rsp */
		0xff, 0x54, 0x24, 0xf8,       /* call *-8(%rsp) */
		0x48, 0x8d, 0x64, 0x24, 0xf8, /* lea -8(%rsp),%rsp */
		0xe8, 0,    0,    0,    0,    /* call way_out */
		0xc3,                         /* ret */
		0xcc, 0xcc, 0xcc, 0xcc,
	};
	const uint32_t out = AREA_STUBS_PER_CHUNK * UKP_STUB_SIZE;
	uint32_t i, at;
	int32_t rel;

	memset(buf, 0xcc, AREA_STUB_CHUNK);
	for (i = 0; i < AREA_STUBS_PER_CHUNK; i++) {
		at = i * UKP_STUB_SIZE;
		memcpy(buf + at, stub, sizeof(stub));
		at += UKP_STUB_WAY_IN + UKP_STUB_CALL;
		rel = (int32_t)(out - at);
		memcpy(buf + at - 4, &rel, 4);
	}
	memcpy(buf + out, way_out, sizeof(way_out)); /* jmp *2(%rip) */
	memcpy(buf + out + 8, &return_entry, 8);
}

uint32_t area_cpu_flags(void)
{
	uint32_t a, b, c, d, flags = UKP_CTL_DIRECT;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 22))
		flags |= UKP_CTL_RDPID;
	return flags;
}

/*
 * Fault handlers stand on the stack that the program chose for its own.  One that
 * it ignores and somebody sends it interrupts no call.
 */
uint64_t area_signal_flags(int sig, const struct ukp_sigaction *old)
{
	uint64_t flags = UKP_SA_SIGINFO | UKP_SA_NODEFER | UKP_SA_RESTORER;

	if (old->handler == UKP_SIG_IGN)
		return flags | UKP_SA_ONSTACK | UKP_SA_RESTART;
	if (old->handler == UKP_SIG_DFL)
		return flags | UKP_SA_ONSTACK;
	if (sig == UKP_SIGTRAP)
		return flags | UKP_SA_ONSTACK | (old->flags & UKP_SA_RESTART);
	return flags | (old->flags & (UKP_SA_ONSTACK | UKP_SA_RESTART));
}

void area_table_put(struct ukp_site_table *table, uint32_t mask, uint64_t addr, uint32_t off)
{
	uint32_t i = ukp_site_hash(addr), n;

	/* Bounded: a target may have filled what we left free. */
	for (n = 0; n <= mask && table->site[i & mask]; n++)
		i++;
	/* Release: the site is complete before the table names it. */
	__atomic_store_n(&table->site[i & mask], off, __ATOMIC_RELEASE);
}
