/* SPDX-License-Identifier: MIT */
/* Who is inside the windows, and the way out.  See settle.h. */
#include "lib/still/settle.h"

#include "engine/arch.h"
#include "engine/rethook.h"
#include "engine/signal.h"
#include "wire/instance.h"

enum { NR_pread64 = 17 };

#define WORDS (SETTLE_BUF / 8)
#define NEAR_WORDS 4096 /* above sp: what a thread in our code may be about to use */
#define DEEPEST (8ull << 20)
#define STACKS 16 /* that one thread's contexts lead to */

/* A signal frame in words from its ip: restorer, siginfo, the registers. */
enum {
	FRAME_RESTORER = -22,
	FRAME_REGS = -16,
	FRAME_SP = -1,
	FRAME_SEGS = 2,
	FRAME_SIGNO = 17,
	FRAME_CODE = 18,
	OVERLAP = 64,
};

#define USER_CS 0x33
#define USER_SS 0x2b

static struct settle_window *window_below(struct settle *st, uint64_t pc)
{
	uint32_t low = 0, high = st->nr;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (st->window[mid].d->addr < pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &st->window[low - 1] : NULL;
}

/* The window that has an instruction's start at pc, but for its first. */
static struct settle_window *inside(struct settle *st, uint64_t pc)
{
	struct settle_window *w = window_below(st, pc);
	unsigned int i;

	if (!w || pc - w->d->addr >= w->d->len)
		return NULL;
	for (i = 1; i < w->d->nr; i++)
		if (w->d->addr + w->d->insn[i].off == pc)
			return w;
	return NULL;
}

static struct lib_site *site_of_code(uint64_t pc)
{
	struct lib_arena *a;

	for (a = __atomic_load_n(&ukp_lib_arenas, __ATOMIC_ACQUIRE); a; a = a->next)
		if (pc - a->addr < a->len)
			return a->site[(pc - a->addr) / UKP_SLOT_SIZE];
	return NULL;
}

/* The variant of a site whose slot has pc; the table holds them one behind the other. */
static const struct ukp_site *variant(const struct lib_site *s, uint64_t pc)
{
	const struct ukp_site_table *t = ukp_ctl_at(ukp_lib_ctl, ukp_lib_ctl->sites);
	uint32_t i = ukp_site_hash(s->addr), n;

	for (n = 0; n <= t->mask && t->site[(i + n) & t->mask]; n++) {
		const struct ukp_site *us = ukp_ctl_at(ukp_lib_ctl, t->site[(i + n) & t->mask]);

		if (us->addr == s->addr && pc - us->slot < us->slot_len)
			return us;
	}
	return NULL;
}

/* The window that a thread at pc, in a slot or a detour, would come out in. */
static struct settle_window *leads_inside(struct settle *st, uint64_t pc,
                                          const struct ukp_site **slot)
{
	const struct lib_site *s = site_of_code(pc);
	const struct ukp_site *us = s ? variant(s, pc) : NULL;

	*slot = us;
	if (us)
		return inside(st, us->addr + us->len);
	return s && s->covers ? inside(st, s->addr + s->covers) : NULL;
}

/* Out of a slot: behind what has run; what has not, in the copy, for it was counted. */
static uint64_t out_of_slot(const struct settle_window *w, const struct ukp_site *us, uint64_t pc,
                            uint64_t sp)
{
	const struct ukp_detour *d = w->d;
	struct ukp_site_frame frame;
	unsigned int i;

	if (!ukp_site_frame(us, pc, sp, &frame) || frame.sp != sp || frame.flags & UKP_PC_SAVED)
		return 0;
	if (frame.pc != us->addr)
		return ukp_detour_park(d, frame.pc);
	for (i = 0; i < d->nr; i++)
		if (d->addr + d->insn[i].off == frame.pc)
			return d->buf + d->insn[i].copy;
	return 0;
}

/*
 * At a stub: before it calls a function's copy, the address of that is in a word
 * that is at most one below sp.
 */
static bool in_stubs(uint64_t pc)
{
	return ukp_rethook_index(ukp_lib_ctl, pc) != UINT32_MAX;
}

static bool in_hits(const struct settle *st, uint64_t pc)
{
	return pc >= st->hit_start && pc < st->hit_end;
}

/* The ip of a hit whose handlers have not chosen another one: see LIB_MOVED. */
static bool is_open_hit(const uint64_t *ip)
{
	return ip[-1] == UINT64_MAX && ip[1] == USER_CS && ip[4] == USER_SS;
}

/* Our trap handler's frame as the kernel made it: it will ask where to go on. */
static bool is_open_trap(const uint64_t *ip)
{
	return ip[FRAME_RESTORER] == (uint64_t)ukp_restorer &&
	       (uint32_t)ip[FRAME_SIGNO] == UKP_SIGTRAP &&
	       (uint32_t)ip[FRAME_CODE] == UKP_SI_KERNEL;
}

/* Either, as far as the n words around it show; it then says where a hit was, no more. */
static bool is_open(const uint64_t *ip, uint32_t i, uint32_t n)
{
	if (i >= 1 && i + 4 < n && is_open_hit(ip))
		return true;
	return (int)i >= -FRAME_RESTORER && i + FRAME_CODE < n && is_open_trap(ip);
}

/* A word that a thread in our code may be about to jump to. */
static void suspect(struct settle *st, uint64_t word)
{
	const struct ukp_site *us;
	struct settle_window *w = inside(st, word);

	if (!w)
		w = leads_inside(st, word, &us);
	if (w)
		w->stuck = true;
}

static uint32_t read_words(struct settle *st, uint64_t addr, uint64_t bytes)
{
	long n;

	if (bytes > SETTLE_BUF)
		bytes = SETTLE_BUF;
	n = ukp_arch_syscall(NR_pread64, st->mem_fd, (long)st->buf, (long)bytes, (long)addr);
	return n > 0 ? (uint32_t)n / 8 : 0;
}

/*
 * Between reading where a trap goes on and going there, a thread has that on its
 * stack or in a register; while it reads, nobody can tell.
 */
static void in_our_code(struct settle *st, uint64_t pc, uint64_t sp)
{
	uint32_t n, i;

	if (pc >= (uint64_t)ukp_pick_start && pc < (uint64_t)ukp_pick_end)
		for (i = 0; i < st->nr; i++)
			st->window[i].stuck = true;
	n = read_words(st, (sp & ~7ull) - 8, NEAR_WORDS * 8ull);
	for (i = 0; i < n; i++)
		if (!is_open(&st->buf[i], i, n) || !inside(st, st->buf[i]))
			suspect(st, st->buf[i]);
}

struct walk {
	uint64_t from[STACKS]; /* where to read on, by what saved contexts say of sp */
	uint64_t code[STACKS]; /* 0, or a pc in our code that goes with it */
	bool seen[STACKS];     /* the words from there on have been looked at */
	unsigned int nr, done;
};

static void walk_to(struct walk *k, uint64_t sp, uint64_t code, bool seen)
{
	if (k->nr < STACKS) {
		k->from[k->nr] = sp;
		k->seen[k->nr] = seen;
		k->code[k->nr++] = code;
	}
}

static void saved(struct settle *st, const uint64_t *ip, bool signal)
{
	const struct ukp_site *us;
	struct settle_window *w = inside(st, *ip);
	int i;

	if (w && (signal ? is_open_trap(ip) : is_open_hit(ip)))
		return;
	if (!w)
		w = leads_inside(st, *ip, &us);
	if (w)
		w->stuck = true;
	if (signal && in_hits(st, *ip))
		for (i = FRAME_REGS; i < FRAME_SP; i++)
			suspect(st, ip[i]);
}

/*
 * A context among words: an ip with, behind it, flags and the selectors of user
 * code as a signal frame has them, or cs, flags, sp, ss as iretq takes them.
 */
static void look(struct settle *st, const uint64_t *w, uint64_t at, uint64_t end, struct walk *k)
{
	if ((w[FRAME_SEGS] & 0xffff) == USER_CS && w[FRAME_SEGS] >> 48 == USER_SS) {
		bool seen = w[FRAME_SP] >= at && w[FRAME_SP] < end;
		bool ours = in_hits(st, *w) || in_stubs(*w);

		saved(st, w, true);
		if (!seen || ours)
			walk_to(k, w[FRAME_SP], ours ? *w : 0, seen);
	} else if (w[1] == USER_CS && w[4] == USER_SS) {
		saved(st, w, false);
	}
}

static uint64_t stack_end(const struct settle *st, uint64_t sp)
{
	uint32_t low = 0, high = st->nr_stacks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (st->stack[mid].end <= sp)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < st->nr_stacks && sp >= st->stack[low].start)
		return st->stack[low].end - sp < DEEPEST ? st->stack[low].end : sp + DEEPEST;
	return sp + (1ull << 20); /* newer than the view of the mappings */
}

static void scan_stack(struct settle *st, uint64_t sp, struct walk *k)
{
	uint64_t at = sp & ~7ull, end = stack_end(st, sp);
	uint32_t n, i, first = 1;

	while (at < end) {
		n = read_words(st, at, end - at);
		/* What is near either end of a piece is looked at as far as it goes. */
		for (i = first; i + 4 < n; i++) {
			uint64_t pad[OVERLAP];
			const uint64_t *w = &st->buf[i];
			int j;

			if (w[1] != USER_CS && (w[FRAME_SEGS] & 0xffff) != USER_CS)
				continue;
			if (i < OVERLAP / 2 || i + OVERLAP / 2 >= n) {
				for (j = 0; j < OVERLAP; j++) {
					long from = (long)i + j - OVERLAP / 2;

					pad[j] = from >= 0 && from < (long)n ? st->buf[from] : 0;
				}
				w = &pad[OVERLAP / 2];
			}
			look(st, w, sp, end, k);
		}
		if (n < WORDS)
			return;
		at += (WORDS - OVERLAP) * 8ull;
		first = OVERLAP / 2;
	}
}

static void scan_stacks(struct settle *st, uint64_t sp)
{
	struct walk k;

	k.nr = 0;
	walk_to(&k, sp, 0, false);
	for (k.done = 0; k.done < k.nr; k.done++) {
		if (k.code[k.done])
			in_our_code(st, k.code[k.done], k.from[k.done]);
		if (!k.seen[k.done])
			scan_stack(st, k.from[k.done], &k);
	}
	/* More than we can follow: nothing is sure. */
	if (k.nr == STACKS)
		for (uint32_t i = 0; i < st->nr; i++)
			st->window[i].stuck = true;
}

static void move(struct settle *st, struct still_thread *t, uint64_t to)
{
	t->regs.r.ip = to;
	t->changed = true;
	st->moved++;
}

/* Behind a window, too: a system call that is its last may start again. */
static struct settle_window *ends_at(struct settle *st, uint64_t pc)
{
	struct settle_window *w = window_below(st, pc);

	return w && w->d->after_syscall && pc == w->d->addr + w->d->len ? w : NULL;
}

static void look_at(struct settle *st, struct still_thread *t)
{
	struct pt_regs *r = &t->regs.r;
	const struct ukp_site *us = NULL;
	struct settle_window *w = inside(st, r->ip);
	uint64_t to = 0;
	unsigned int i;

	if (!w)
		w = ends_at(st, r->ip);
	if (w) {
		/* At an int3 that has trapped, the ip is behind it: it hasn't got on. */
		if (ukp_still_trapped(t))
			w = NULL;
		else
			to = ukp_detour_park(w->d, r->ip);
	} else {
		w = leads_inside(st, r->ip, &us);
		if (w && us)
			to = out_of_slot(w, us, r->ip, r->sp);
	}
	if (w && to)
		move(st, t, to);
	else if (w)
		w->stuck = true;
	if (in_hits(st, r->ip)) {
		const uint64_t *word = (const uint64_t *)r;

		for (i = 0; i < sizeof(*r) / 8; i++)
			suspect(st, word[i]);
	}
	if (in_hits(st, r->ip) || in_stubs(r->ip))
		in_our_code(st, r->ip, r->sp);
	scan_stacks(st, r->sp);
}

void ukp_settle(struct still *s)
{
	struct settle *st = s->arg;
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (s->thread[i].state == STILL_STOPPED && s->thread[i].regs.r.sp)
			look_at(st, &s->thread[i]);
}
