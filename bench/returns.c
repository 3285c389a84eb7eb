/* SPDX-License-Identifier: MIT */
/*
 * What it costs to follow a call from its entry to its return, both counted, over a
 * plain call: by the three mechanisms with the engine's own parts, by a kretprobe
 * of the library, and beside call in place written by hand with the same record
 * (bench/floor_return.S).  Copies of one function, called in turns by one thread.
 * All counts must be exact.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/arch.h"
#include "engine/follow.h"
#include "engine/frames.h"
#include "engine/objpool.h"
#include "engine/rethook.h"
#include "lib/hit/hit.h"
#include "plan/detour.h"
#include "ukprobes/kprobes.h"

#define ROUNDS 401
#define CALLS 1000
#define RECORDS 1024 /* of each table and pool that is the bench's own */

long work_plain(long a, long b), work_floor(long a, long b), work_exit(long a, long b);
long work_call(long a, long b), work_slot(long a, long b), work_kret(long a, long b);

enum row_kind { PLAIN, FLOOR, EXIT, CALL, SLOT, KRET, NR_ROWS };

static struct row {
	const char *what;
	long (*fn)(long, long);
	double aim;
	uint64_t entries, returns; /* those that are followed by the engine: in stat.hits */
	struct ukp_stat stat;
	struct ukp_action action; /* its flags say how */
	double ns[ROUNDS];
} rows[NR_ROWS] = {
	[PLAIN] = { "plain call", work_plain },
	[FLOOR] = { "floor: call in place by hand", work_floor },
	[EXIT] = { "exit sites", work_exit, 10,
	           .action.flags = UKP_ACTION_EXITS | UKP_ACTION_FRAMES },
	[CALL] = { "call in place", work_call, 15 },
	[SLOT] = { "slot overwrite", work_slot, 25, .action.flags = UKP_ACTION_SLOT },
	[KRET] = { "kretprobe, UKP_NOVEC, in the jump form", work_kret },
};

/* --- by hand ----------------------------------------------------------------------- */

static struct ukp_objpool *floor_pool;
static struct ukp_instance floor_inst[RECORDS];

static struct ukp_instance *floor_last; /* the floor knows where it is; nobody else does */

void floor_entry(uint64_t ret_addr, uint64_t frame);
uint64_t floor_return(uint64_t frame);

__attribute__((noinline, target("general-regs-only"))) void floor_entry(uint64_t ret_addr,
                                                                        uint64_t frame)
{
	struct ukp_instance *inst = &floor_inst[ukp_objpool_pop(floor_pool, 0)];

	inst->ret_addr = ret_addr;
	inst->frame = frame;
	floor_last = inst;
	ukp_count(&rows[FLOOR].entries);
}

__attribute__((noinline, target("general-regs-only"))) uint64_t floor_return(uint64_t frame)
{
	struct ukp_instance *inst = floor_last;
	uint64_t ret_addr = inst->ret_addr;

	if (inst->frame != frame)
		die("another frame");
	ukp_count(&rows[FLOOR].returns);
	ukp_objpool_push(floor_pool, 0, (uint32_t)(inst - floor_inst));
	return ret_addr;
}

static void make_floor(void)
{
	uint64_t size = ukp_objpool_size(RECORDS, 1);

	floor_pool = aligned_alloc(64, (size + 63) & ~63ull);
	if (!floor_pool)
		die("no memory");
	memset(floor_pool, 0, size);
	ukp_objpool_init(floor_pool, RECORDS, 1);
}

/* --- the engine's parts -------------------------------------------------------------- */

static int returned(struct ukp_hit *hit, uint64_t ctx)
{
	ukp_count(&((struct row *)ctx)->returns);
	return 0;
}

static void begin_hit(struct ukp_hit *hit, struct pt_regs *regs, struct ukp_site *site)
{
	ukp_hit_init(hit, ukp_lib_ctl, site, regs, UKP_HIT_JUMP);
	hit->cpu = ukp_arch_cpu(ukp_lib_ctl);
}

static void follow(struct ukp_hit *hit, struct pt_regs *regs, struct ukp_site *site,
                   struct row *row)
{
	begin_hit(hit, regs, site);
	hit->action = &row->action;
	ukp_follow(hit, returned, (uint64_t)row, 0, &row->stat);
}

static int slot_entry(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	follow(&hit, regs, site, &rows[SLOT]);
	return 0;
}

static int call_entry(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	follow(&hit, regs, site, &rows[CALL]);
	return hit.stub ? ukp_rethook_call_own(&hit) : 0;
}

static int exit_entry(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	follow(&hit, regs, site, &rows[EXIT]);
	return 0;
}

static int exit_return(struct pt_regs *regs, struct ukp_site *site)
{
	struct ukp_hit hit;

	begin_hit(&hit, regs, site);
	return ukp_exit_hit(&hit, (uint64_t)&rows[EXIT].action);
}

/* The library has no table of frames; these lie behind what it has in its mapping. */
static void make_frames(void)
{
	struct ukp_priv *priv = (struct ukp_priv *)ukp_lib_ctl->priv;
	char *t = mmap(NULL, ukp_frames_size(RECORDS), PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		die("no memory");
	ukp_frames_init((struct ukp_frames *)t, RECORDS);
	priv->off_frames = (uint64_t)(t - (char *)priv);
}

/* --- planting ------------------------------------------------------------------------ */

static unsigned char *room; /* for detours */

static void write_jump(unsigned char *at, const unsigned char *jump)
{
	unsigned char *page = (unsigned char *)((uintptr_t)at & ~4095ul);

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("the text can't be written");
	memcpy(at, jump, PLAN_JUMP_SIZE);
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC))
		die("the text can't be protected");
}

/* As a target's jumps are: what a C function clobbers is saved, and sp. */
static void plant(long (*fn)(long, long), unsigned int off, const struct plan_window *w,
                  uint8_t probes, int (*engine)(struct pt_regs *, struct ukp_site *), bool call)
{
	static struct plan_detour out;
	static struct ukp_site site;
	unsigned char *at = (unsigned char *)(uintptr_t)fn + off;
	struct plan_detour_request req = {
		.code = at,
		.addr = (uintptr_t)at,
		.window = w,
		.buf = (uintptr_t)room,
		.engine = (uintptr_t)engine,
		.entry = (uintptr_t)engine,
		.form = { .saves = PLAN_SAVE_CALL | PLAN_SAVE(sp), .near = true, .call = call },
		.probes = probes,
	};

	for (int i = 0; i < UKP_WINDOW_INSNS; i++)
		req.site[i] = (uintptr_t)&site;
	if (plan_detour(&req, &out) != PLAN_OK)
		die("no detour");
	memcpy(room, out.code, out.d.size);
	room += (out.d.size + 63u) & ~63u;
	write_jump(at, out.d.jump);
}

static void plant_all(void)
{
	/* lea, add */
	static const struct plan_window entry = {
		.nr = 2, .len = 7, .covered = 7, .insn = { { 0, 4 }, { 4, 3 } }
	};
	/* behind mov and shr: xor, add, ret */
	static const struct plan_window way_out = {
		.nr = 3, .len = 7, .covered = 7, .insn = { { 0, 3 }, { 3, 3 }, { 6, 1 } }
	};
	unsigned char *page = (unsigned char *)((uintptr_t)work_plain & ~4095ul);

	room = mmap(page + (64 << 20), 16384, PROT_READ | PROT_WRITE | PROT_EXEC,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (room == MAP_FAILED)
		die("no room for detours");
	plant(work_slot, 0, &entry, 1, slot_entry, false);
	plant(work_call, 0, &entry, 1, call_entry, true);
	plant(work_exit, 0, &entry, 1, exit_entry, false);
	plant(work_exit, 14, &way_out, 4, exit_return, false);
}

static int kret_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	(void)ri;
	(void)regs;
	rows[KRET].entries++;
	return 0;
}

static int kret_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	(void)ri;
	(void)regs;
	rows[KRET].returns++;
	return 0;
}

static void plant_kret(struct kretprobe *rp)
{
	char why[256];

	if (register_kretprobe(rp))
		die("%s", ukp_kprobe_error());
	wait_for_kprobe_optimizer();
	if (ukp_kprobe_form(&rp->kp, why, sizeof(why)) != 1)
		die("no jump came: %s", why);
}

/* --- measuring ----------------------------------------------------------------------- */

static void print_row(int i)
{
	double ns[ROUNDS], floor[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		ns[r] = rows[i].ns[r] - rows[PLAIN].ns[r];
		floor[r] = rows[FLOOR].ns[r] - rows[PLAIN].ns[r];
	}
	printf("%-42s %8.1f %8.1f", rows[i].what, median(rows[i].ns, ROUNDS), median(ns, ROUNDS));
	if (i > FLOOR)
		printf(" %9.2f", median_ratio(ns, floor, ROUNDS));
	if (rows[i].aim > 0)
		printf("  (aim <= %.0f over)", rows[i].aim);
	printf("\n");
}

int main(void)
{
	struct kretprobe rp = { .kp = { .addr = (kprobe_opcode_t *)(uintptr_t)work_kret,
		                        .flags = UKP_NOVEC },
		                .entry_handler = kret_entry,
		                .handler = kret_return };
	const unsigned long all = ROUNDS * (CALLS + CALLS / 10);

	make_floor();
	plant_kret(&rp);
	make_frames();
	plant_all();
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < NR_ROWS; i++) {
			ns_a_call(rows[i].fn, CALLS / 10);
			rows[i].ns[r] = ns_a_call(rows[i].fn, CALLS);
		}
	printf("%-42s %8s %8s %9s\n", "a call followed, medians", "ns", "over", "/ floor");
	for (int i = 0; i < NR_ROWS; i++) {
		print_row(i);
		rows[i].entries += rows[i].stat.hits;
		if (i != PLAIN && (rows[i].entries != all || rows[i].returns != all))
			die("%s: %lu entries, %lu returns", rows[i].what, rows[i].entries,
			    rows[i].returns);
	}
	if (rp.nmissed)
		die("calls were missed");
	unregister_kretprobe(&rp);
	return 0;
}
