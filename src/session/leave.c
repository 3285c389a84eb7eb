/* SPDX-License-Identifier: MIT */
/*
 * Leaving a target.
 *
 *	1. text: each probed byte is put back from its file
 *	2. returns: each live frame gets its true return address back
 *	3. threads: those in slots are moved to the original code, those in the
 *	   agent run on until they are out
 *	4. dispositions, then all mappings
 *
 * Works from the control area alone, so it serves a broker that leaves and a
 * new one that finds what a killed one left.  The area is the target's to
 * write: what comes from it is bounded, and only ever given back to that same
 * target.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "plan/plan.h"
#include "session/target.h"
#include "wire/detour.h"
#include "wire/instance.h"

struct detour_copy {
	struct {
		struct ukp_detour d;
		struct ukp_detour_pc pc[256];
	} detour;
	struct ukp_detour_shape shape;
};

#define PATIENCE_MS 3000
#define STACK_SCAN (1u << 20)

struct leave {
	struct inject *inject;
	struct sym_proc *sym;
	const struct ukp_ctl *ctl;
	const void *area; /* what offsets count from */
	size_t len;
	uint64_t text_start, text_end;
	uint64_t stubs_start, stubs_end;
	uint64_t chain_return;
	unsigned int stuck; /* threads in our code at the last look */
};

static bool ctl_sane(const struct ukp_ctl *c, size_t len)
{
	return len >= sizeof(*c) && c->magic == UKP_CTL_MAGIC && c->version == UKP_CTL_VERSION &&
	       c->nr_mappings <= UKP_NR_MAPPINGS && c->size == UKP_CTL_SIZE &&
	       c->next_free <= len && c->stub_chunk < (1u << 30) && c->nr_instances <= (1u << 24);
}

/* The sites from *i on; bounds first, for the area may hold anything. */
static const struct ukp_site *next_site(struct leave *l, uint32_t *i)
{
	uint32_t off = l->ctl->sites, mask;
	const struct ukp_site_table *t;

	if (!off || off + sizeof(*t) > l->len)
		return NULL;
	t = (const void *)((const char *)l->area + off);
	mask = __atomic_load_n(&t->mask, __ATOMIC_RELAXED);
	if (mask >= (1u << 26) || off + sizeof(*t) + (mask + 1ull) * 4 > l->len)
		return NULL;
	while (*i <= mask) {
		uint32_t at = __atomic_load_n(&t->site[(*i)++], __ATOMIC_RELAXED);

		if (at && at % 8 == 0 && at + sizeof(struct ukp_site) <= l->len)
			return (const void *)((const char *)l->area + at);
	}
	return NULL;
}

/* A private copy of what the area has of a detour; what is cut off counts as nothing. */
static bool copy_detour(struct leave *l, const struct ukp_site *s, struct detour_copy *c)
{
	uint32_t off = s->detour, shape = s->shape;
	size_t n;

	memset(c, 0, sizeof(*c));
	if (!off || off >= l->len || !shape || shape >= l->len)
		return false;
	n = l->len - off < sizeof(c->detour) ? l->len - off : sizeof(c->detour);
	memcpy(&c->detour, (const char *)l->area + off, n);
	n = l->len - shape < sizeof(c->shape) ? l->len - shape : sizeof(c->shape);
	memcpy(&c->shape, (const char *)l->area + shape, n);
	if (c->shape.npc > UKP_SHAPE_PCS)
		c->shape.npc = UKP_SHAPE_PCS;
	return c->detour.d.buf && c->detour.d.size;
}

/* A jump is taken out whole; false: there is none of ours. */
static bool restore_window(struct leave *l, const struct ukp_site *s)
{
	unsigned char now[5], orig[5];
	struct detour_copy c;

	if (!s->detour || !copy_detour(l, s, &c) ||
	    inject_read(l->inject, s->addr, now, sizeof(now)) ||
	    memcmp(now, c.detour.d.jump, sizeof(now)))
		return false;
	if (sym_original(l->sym, s->addr, orig, sizeof(orig)))
		memcpy(orig, c.detour.d.orig, sizeof(orig));
	inject_write(l->inject, s->addr, orig, sizeof(orig));
	return true;
}

static void restore_text(struct leave *l)
{
	const struct ukp_site *s;
	unsigned char now, orig;
	uint32_t i = 0;

	while ((s = next_site(l, &i))) {
		if (restore_window(l, s))
			continue;
		if (inject_read(l->inject, s->addr, &now, 1) || now != 0xcc)
			continue;
		/*
		 * The file has the truth.  Where it is gone (replaced on disk),
		 * what lies in the target is better than an int3 that kills it.
		 */
		if (sym_original(l->sym, s->addr, &orig, 1))
			orig = s->orig[0];
		if (orig != 0xcc)
			inject_write(l->inject, s->addr, &orig, 1);
	}
}

static const struct ukp_site *slot_site(struct leave *l, uint64_t pc)
{
	const struct ukp_site *s;
	uint32_t i = 0;

	while ((s = next_site(l, &i)))
		if (pc - s->slot < UKP_SLOT_SIZE)
			return s;
	return NULL;
}

static bool in_slots(struct leave *l, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < l->ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++)
		if (l->ctl->mapping[i].kind == UKP_MAP_SLOTS &&
		    pc - l->ctl->mapping[i].addr < l->ctl->mapping[i].len)
			return true;
	return false;
}

static bool in_agent(struct leave *l, uint64_t pc)
{
	return (pc >= l->text_start && pc < l->text_end) ||
	       (pc >= l->stubs_start && pc < l->stubs_end);
}

/*
 * From a detour's copies; a thread in an entry has registers in the frame and
 * walks on.  Only while the window has its own bytes.
 */
static bool from_detour(struct leave *l, uint64_t *pc, uint64_t *sp)
{
	struct ukp_detour_frame frame;
	const struct ukp_site *s;
	struct detour_copy c;
	uint32_t i = 0, k;

	while ((s = next_site(l, &i))) {
		if (!s->detour || !copy_detour(l, s, &c) || *pc - c.detour.d.buf >= c.detour.d.size)
			continue;
		for (k = 0; k < c.detour.d.nr && k < UKP_WINDOW_INSNS; k++)
			if (*pc - c.detour.d.buf - c.detour.d.insn[k].entry < c.shape.len)
				return false;
		if (!ukp_detour_frame(&c.detour.d, &c.shape, *pc, *sp, &frame) ||
		    (frame.flags & UKP_PC_MOVED))
			return false;
		*pc = frame.pc;
		*sp = frame.sp;
		return true;
	}
	return false;
}

/* To where the thread would be without us; false: it is in the middle of something. */
static bool to_original(struct leave *l, uint64_t *pc, uint64_t *sp)
{
	const struct ukp_site *s = slot_site(l, *pc);
	struct ukp_site copy;
	uint64_t orig_pc, orig_sp;

	if (!s)
		return from_detour(l, pc, sp);
	copy = *s;
	if (copy.npc > UKP_SITE_PCS || !plan_original(&copy, *pc, *sp, &orig_pc, &orig_sp))
		return false;
	*pc = orig_pc;
	*sp = orig_sp;
	return true;
}

/*
 * Saved contexts on a stack: an ip with cs and ss of user code behind it.  In
 * a slot: rewritten.  In the agent: its thread will come back to it.
 */
static bool stack_needs_us(struct leave *l, uint64_t sp)
{
	const struct sym_map *m = sym_map_find(l->sym, sp);
	uint64_t end = m ? m->end : 0, *w, ctx[2];
	size_t n, i;
	bool needs = false;

	if (end <= sp)
		return false;
	n = end - sp < STACK_SCAN ? end - sp : STACK_SCAN;
	n &= ~7ul;
	w = malloc(n);
	if (!w || inject_read(l->inject, sp & ~7ull, w, n)) {
		free(w);
		return false;
	}
	n /= 8;
	for (i = 0; i < n && !needs; i++) {
		if (w[i] == l->chain_return)
			needs = true;
		if (!in_agent(l, w[i]) && !in_slots(l, w[i]))
			continue;
		if (!i || i + 2 >= n || (w[i + 2] & 0xffff) != 0x33 || w[i + 2] >> 48 != 0x2b)
			continue;
		ctx[0] = w[i - 1];
		ctx[1] = w[i];
		if (in_agent(l, w[i]) || !to_original(l, &ctx[1], &ctx[0]))
			needs = true;
		else
			inject_write(l->inject, (sp & ~7ull) + (i - 1) * 8, ctx, sizeof(ctx));
	}
	free(w);
	return needs;
}

/* A trap that is raised but not delivered needs our handler, too: without it, it kills. */
static bool busy(struct leave *l)
{
	size_t i;

	l->stuck = 0;
	for (i = 0; i < inject_nr_threads(l->inject); i++) {
		struct inject_thread *th = inject_thread_at(l->inject, i);
		struct user_regs_struct regs = th->regs;
		uint64_t pc = regs.rip, sp = regs.rsp;

		if (in_slots(l, pc) && to_original(l, &pc, &sp)) {
			regs.rip = pc;
			regs.rsp = sp;
			inject_set_regs(l->inject, i, &regs);
		}
		if (in_agent(l, pc) || in_slots(l, pc) || stack_needs_us(l, sp) ||
		    inject_pending(l->inject, i, UKP_SIGTRAP, UKP_SI_KERNEL))
			l->stuck++;
	}
	return l->stuck;
}

static uint64_t stub_of(const struct ukp_ctl *c, uint32_t i)
{
	return c->stubs + (uint64_t)(i / c->stubs_per_chunk) * c->stub_chunk +
	       i % c->stubs_per_chunk * 8;
}

/* How many instances may be in use, and where they lie; 0: none. */
static uint32_t instances(struct inject *t, const struct ukp_ctl *c, uint64_t *base)
{
	struct ukp_objpool pool;
	struct ukp_priv *priv = malloc(sizeof(*priv));
	uint32_t n = 0;

	if (priv && c->priv && c->stubs_per_chunk &&
	    !inject_read(t, c->priv, priv, sizeof(*priv)) &&
	    !inject_read(t, c->priv + priv->off_pool, &pool, sizeof(pool))) {
		*base = c->priv + priv->off_instances;
		n = pool.fresh < c->nr_instances ? (uint32_t)pool.fresh : c->nr_instances;
	}
	free(priv);
	return n;
}

static void unhook(struct leave *l)
{
	struct ukp_instance inst[64];
	uint32_t n, i, k, part;
	uint64_t base, word;

	n = instances(l->inject, l->ctl, &base);
	for (i = 0; i < n; i += part) {
		part = n - i < 64 ? n - i : 64;
		if (inject_read(l->inject, base + (uint64_t)i * sizeof(*inst), inst,
		                part * sizeof(*inst)))
			return;
		for (k = 0; k < part; k++) {
			if (inst[k].state != UKP_INST_LIVE ||
			    inject_read(l->inject, inst[k].frame, &word, 8) ||
			    word != stub_of(l->ctl, i + k))
				continue;
			inject_write(l->inject, inst[k].frame, &inst[k].ret_addr, 8);
		}
	}
}

static void restore_signals(struct leave *l)
{
	uint64_t at = inject_scratch(l->inject, sizeof(struct ukp_sigaction));
	struct ukp_sigaction now, old;
	int sig;

	for (sig = 1; sig < UKP_NR_SIGNALS && at; sig++) {
		if (!(UKP_SIGNALS & l->ctl->taken & 1ull << (sig - 1)))
			continue;
		if (inject_syscall(l->inject, SYS_rt_sigaction, sig, 0, at, 8, 0, 0) ||
		    inject_read(l->inject, at, &now, sizeof(now)))
			continue;
		if (now.handler < l->text_start || now.handler >= l->text_end)
			continue;
		if (!inject_read(l->inject,
		                 l->ctl->priv + offsetof(struct ukp_priv, old) + sig * sizeof(old),
		                 &old, sizeof(old)) &&
		    !inject_write(l->inject, at, &old, sizeof(old)))
			inject_syscall(l->inject, SYS_rt_sigaction, sig, at, 0, 8, 0, 0);
	}
}

/*
 * Close SIGTRAP again where a thread still has the mask that we opened, or has
 * it from such a thread; one that changed its mask since has what it wants.
 */
static void restore_masks(struct leave *l)
{
	uint64_t bit = 1ull << (UKP_SIGTRAP - 1);
	uint32_t k, n = l->ctl->nr_masks;
	size_t i;

	for (i = 0; i < inject_nr_threads(l->inject); i++)
		for (k = 0; k < n && k < UKP_NR_MASKS; k++)
			if (inject_thread_at(l->inject, i)->sigblk == (l->ctl->mask[k] & ~bit))
				inject_set_mask(l->inject, i, l->ctl->mask[k]);
}

static void unmap_all(struct leave *l)
{
	uint32_t i, n = l->ctl->nr_mappings;
	struct ukp_mapping m;

	/* The area itself is the first: it goes last. */
	for (i = n < UKP_NR_MAPPINGS ? n : UKP_NR_MAPPINGS; i-- > 0;) {
		m = l->ctl->mapping[i];
		if (m.kind != UKP_MAP_FREE && m.addr && m.len)
			inject_syscall(l->inject, SYS_munmap, m.addr, m.len, 0, 0, 0, 0);
	}
}

static void find_ranges(struct leave *l)
{
	uint32_t i, off;

	for (i = 0; i < l->ctl->nr_mappings && i < UKP_NR_MAPPINGS; i++) {
		const struct ukp_mapping *m = &l->ctl->mapping[i];

		if (m->kind == UKP_MAP_TEXT) {
			l->text_start = m->addr;
			l->text_end = m->addr + m->len;
		} else if (m->kind == UKP_MAP_STUBS) {
			l->stubs_start = m->addr;
			l->stubs_end = m->addr + m->len;
		}
	}
	if (l->text_start &&
	    !inject_read(l->inject, l->text_start + AGENT_OFF_FNS + 4 * AGENT_CHAIN_RETURN, &off,
	                 4))
		l->chain_return = l->text_start + off;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Let threads walk out of our code; what was moved by then stays moved. */
static int wait_idle(struct leave *l, struct err *err)
{
	long end = now_ms() + PATIENCE_MS;
	unsigned int us = 50;
	int ret;

	for (;;) {
		unhook(l);
		if (!busy(l))
			return 0;
		if (now_ms() > end)
			return err_set(
				err, -EAGAIN,
				"%u threads of process %d are still inside ukprobes' code; "
				"its text is restored, the rest stays until 'ukprobe cure -p "
				"%d'",
				l->stuck, inject_pid(l->inject), inject_pid(l->inject));
		ret = inject_breathe(l->inject, us, err);
		if (ret)
			return ret;
		if (us < 20000)
			us *= 2;
		sym_refresh(l->sym, NULL);
	}
}

int leave_target(struct inject *t, struct sym_proc *sym, const struct ukp_ctl *ctl,
                 const void *area, size_t len, bool rest, struct err *err)
{
	struct leave l = { .inject = t, .sym = sym, .ctl = ctl, .area = area, .len = len };
	uint64_t magic;
	int ret;

	if (!ctl_sane(ctl, len))
		return err_set(err, -EBADMSG, "what lies in process %d is no agent of this version",
		               inject_pid(t));
	find_ranges(&l);
	/* Our own probes' text is back already, faster than one by one. */
	if (ctl == area)
		restore_text(&l);
	ret = wait_idle(&l, err);
	if (ret)
		return ret;
	/* It may have executed another program while it ran. */
	if (inject_read(t, ctl->self, &magic, sizeof(magic)) || magic != UKP_CTL_MAGIC)
		return 0;
	ret = inject_begin(t, err);
	if (ret)
		return ret;
	restore_signals(&l);
	restore_masks(&l);
	inject_end(t);
	ret = rest ? inject_breathe(t, 0, err) : 0;
	if (ret)
		return ret;
	if (inject_read(t, ctl->self, &magic, sizeof(magic)) || magic != UKP_CTL_MAGIC)
		return 0; /* executed another program, and all of it went */
	ret = inject_begin(t, err);
	if (ret)
		return ret;
	unmap_all(&l);
	inject_end(t);
	return 0;
}

/* The used part of the area; a hostile size stays within bounds. */
static struct ukp_ctl *copy_ctl(int mem_fd, uint64_t addr, size_t *len)
{
	struct ukp_ctl head, *c;

	if (pread(mem_fd, &head, sizeof(head), addr) != (ssize_t)sizeof(head) ||
	    head.magic != UKP_CTL_MAGIC || head.next_free < sizeof(head) ||
	    head.next_free > UKP_CTL_SIZE)
		return NULL;
	c = malloc(head.next_free);
	if (c && pread(mem_fd, c, head.next_free, addr) == (ssize_t)head.next_free) {
		*len = head.next_free;
		return c;
	}
	free(c);
	return NULL;
}

int leave_find(pid_t pid, int mem_fd, struct sym_proc *sym, struct ukp_ctl **ctl, size_t *len,
               struct err *err)
{
	size_t i;

	for (i = 0; i < sym_nr_maps(sym); i++) {
		const struct sym_map *m = sym_map_at(sym, i);

		if (strcmp(m->path, "/memfd:ukprobes-ctl"))
			continue;
		*ctl = copy_ctl(mem_fd, m->start, len);
		if (*ctl && ctl_sane(*ctl, *len))
			return 0;
		free(*ctl);
		return err_set(err, -EBADMSG,
		               "process %d holds an agent that this version cannot read", pid);
	}
	return -ENOENT;
}

bool target_busy(struct target *t)
{
	struct leave l = { .inject = t->inject,
		           .sym = t->sym,
		           .ctl = &t->own,
		           .area = t->ctl,
		           .len = t->own.next_free };

	find_ranges(&l);
	return busy(&l);
}

unsigned int leave_mute(struct target *t, const struct chan *c)
{
	uint64_t mute = t->own.text + agent_offset(AGENT_MUTE_RETURN), base, at;
	struct ukp_instance inst;
	struct probe *p;
	unsigned int muted = 0;
	uint32_t n, i;

	n = instances(t->inject, &t->own, &base);
	for (i = 0; i < n; i++) {
		at = base + (uint64_t)i * sizeof(inst);
		if (inject_read(t->inject, at, &inst, sizeof(inst)))
			break;
		if (inst.state == UKP_INST_FREE || inst.fn == mute)
			continue;
		for (p = c->probes; p; p = p->next_mine)
			if (p->ctx_off && inst.ctx == t->own.self + p->ctx_off)
				break;
		if (!p || p->site || p->planted)
			continue;
		inject_write(t->inject, at + offsetof(struct ukp_instance, fn), &mute, 8);
		__atomic_fetch_add(
			&((struct ukp_stat *)((char *)c->map + UKP_CHAN_OFF_STATS))[p->id]
				 .miss[UKP_MISS_UNRETURNED],
			1, __ATOMIC_RELAXED);
		muted++;
	}
	return muted;
}

struct contexts {
	uint64_t *ip;
	size_t n, max;
};

static int add_context(struct contexts *c, uint64_t ip)
{
	size_t max = c->max ? c->max * 2 : 256;
	uint64_t *more;

	if (c->n == c->max) {
		more = realloc(c->ip, max * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->ip = more;
		c->max = max;
	}
	c->ip[c->n++] = ip;
	return 0;
}

static int stack_contexts(struct target *t, uint64_t sp, struct contexts *c)
{
	const struct sym_map *m = sym_map_find(t->sym, sp);
	size_t n, i;
	uint64_t *w;
	int ret = 0;

	if (!m || m->end <= sp)
		return 0;
	n = (m->end - sp < STACK_SCAN ? m->end - sp : STACK_SCAN) & ~7ul;
	w = malloc(n);
	if (!w || inject_read(t->inject, sp & ~7ull, w, n)) {
		free(w);
		return -EIO;
	}
	n /= 8;
	for (i = 0; i + 2 < n && !ret; i++)
		if ((w[i + 2] & 0xffff) == 0x33 && w[i + 2] >> 48 == 0x2b)
			ret = add_context(c, w[i]);
	free(w);
	return ret;
}

int leave_contexts(struct target *t, uint64_t **ip, size_t *nr)
{
	struct contexts c = { 0 };
	size_t i;
	int ret = 0;

	for (i = 0; i < inject_nr_threads(t->inject) && !ret; i++)
		ret = stack_contexts(t, inject_thread_at(t->inject, i)->regs.rsp, &c);
	if (ret)
		free(c.ip);
	*ip = ret ? NULL : c.ip;
	*nr = ret ? 0 : c.n;
	return ret;
}
