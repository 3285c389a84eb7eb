/* SPDX-License-Identifier: MIT */
/* Running a window as it is and under a jump, and comparing what came out. */
#ifndef TESTS_PLAN_WINDOWS_H
#define TESTS_PLAN_WINDOWS_H

#include "unit/plan/detouring.h"

static struct {
	unsigned long run, several, faults, branches, translated, hits, light, refused, too_long,
		far, longer, counted;
} seen;

static inline uint32_t some_saves(void)
{
	switch (below(4)) {
	case 0:
		return PLAN_SAVE_ALL;
	case 1:
		return PLAN_SAVE_CALL;
	default:
		return (uint32_t)rnd() & PLAN_SAVE_ALL;
	}
}

/* Behind the engine's own count: what counting entries work with. */
#define COUNTS 64u
#define ROWS 512u /* words */

static struct plan_count window_counts;

static inline bool has_rdpid(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 22 & 1;
}

static inline void count_setup(struct plan_count *c)
{
	uint64_t *word = (uint64_t *)(engine_count + 16);

	memset(engine_count, 0, 4096);
	word[0] = 1;
	c->alive = (uint64_t)&word[0];
	for (int i = 0; i < UKP_WINDOW_INSNS; i++) {
		word[1 + i] = (uint64_t)(engine_count + ROWS);
		c->cell[i] = (uint64_t)&word[1 + i];
	}
	c->shards = 1 + (uint32_t)below(COUNTS);
	c->stride = 8;
	c->rdpid = below(2) && has_rdpid();
}

static inline uint32_t counted(const struct plan_count *c)
{
	const uint64_t *row = (const uint64_t *)(engine_count + ROWS);
	uint32_t n = 0;

	for (unsigned int i = 0; i < COUNTS; i++) {
		n += (uint32_t)row[i];
		/* none beyond the last one */
		if (i >= c->shards && row[i])
			return UINT32_MAX;
	}
	return n;
}

/* Any form, with a probe at the first instruction and perhaps at others. */
static inline struct plan_detour_request some_request(const struct sequence *s,
                                                      const struct trial *t)
{
	const bool high = t->addr >= HIGH;
	struct plan_detour_request req = {
		.code = s->code,
		.addr = t->addr,
		.window = &s->w,
		.buf = (high ? HIGH : LOW) + DETOURS + below(TEXT_SIZE - PLAN_DETOUR_MAX),
		.engine = (below(2) ? HIGH : LOW) + CODE + ENGINE,
		.form = { some_saves(), below(2), false, below(2) },
		.probes = (uint8_t)(1 | (below(3) ? 0 : rnd())),
	};

	req.entry = req.engine;
	req.form.near = high == (req.engine >= HIGH) && below(2);
	for (int i = 0; i < UKP_WINDOW_INSNS; i++)
		req.site[i] = rnd();
	if (!below(3)) {
		count_setup(&window_counts);
		req.count = &window_counts;
	}
	return req;
}

/* What came out of the detour, told as if it had happened in place. */
static inline bool window_translate(const struct plan_detour *d, struct outcome *o)
{
	struct ukp_detour_frame f = { 0 };

	if (o->cpu.pc - d->d.buf >= d->d.size)
		return true;
	if (o->signo == SIGTRAP ||
	    !ukp_detour_frame(&d->d, &d->shape, o->cpu.pc, o->cpu.gpr[4], &f) || f.saved ||
	    (f.flags & UKP_PC_MOVED))
		return false;
	o->cpu.pc = f.pc;
	o->cpu.gpr[4] = f.sp;
	seen.translated++;
	return true;
}

/* By how much sp rises before the last instruction, at most: pops do that, and nothing else that
 * fits. */
static inline uint64_t window_rises(const struct sequence *s)
{
	uint64_t rises = 0;

	for (unsigned int i = 0; i + 1 < s->w.nr; i++) {
		const uint8_t *p = s->code + s->w.insn[i].off;

		while (*p == 0x66 || *p == 0x26 || *p == 0x36 || *p == 0x2e || *p == 0x3e ||
		       *p == 0x67 || *p == 0xf2 || *p == 0xf3 || *p == 0x64 || *p == 0x65 ||
		       *p == 0xf0 || (*p & 0xf0) == 0x40)
			p++;
		rises += (*p & 0xf8) == 0x58 || *p == 0x8f || *p == 0x9d ? 8 : 0;
	}
	return rises;
}

/* The stack but for what is below the red zone of every probe. */
static inline bool window_same_stack(const uint8_t *stack, uint64_t sp, const struct sequence *s)
{
	uint64_t top = sp + window_rises(s) - 128 - STACK, bottom = sp - 128 - FRAME - STACK;

	if (bottom > DATA_SIZE)
		bottom = 0;
	return !memcmp(stack, (void *)STACK, bottom) &&
	       !memcmp(stack + top, (void *)(STACK + top), DATA_SIZE - top);
}

static inline bool window_differs(struct trial *t, const struct sequence *s, const char *what,
                                  const struct outcome *a, const struct outcome *b)
{
	sequence_print(s);
	t->n = 0;
	return trial_bad(t, what, a, b);
}

/* What a call through memory that faults has pushed is of no account. */
static inline void window_forgive(const struct sequence *s, const struct outcome *a, uint8_t *stack)
{
	if (s->insn[s->w.nr - 1].flow == PLAN_FLOW_CALL_IND && a->signo != SIGTRAP)
		memset(stack + (a->cpu.gpr[4] - 8 - STACK) % (DATA_SIZE - 8), 0xee, 8);
}

static inline void window_count(const struct sequence *s, const struct trial *t,
                                const struct plan_detour_request *req, const struct outcome *a)
{
	seen.run++;
	seen.several += (req->probes & ((1 << s->w.nr) - 1)) != 1;
	seen.light += req->form.saves != PLAN_SAVE_ALL;
	seen.faults += a->signo != SIGTRAP;
	seen.branches += a->signo == SIGTRAP && a->cpu.pc != t->addr + s->w.len + 1;
	seen.far += !req->form.near;
	seen.longer += s->w.insn[s->w.nr - 1].off >= PLAN_JUMP_SIZE;
	seen.counted += req->count != NULL;
	seen.hits += *engine_count;
}

static inline bool window_compare(struct trial *t, const struct sequence *s,
                                  const struct plan_detour_request *req,
                                  const struct plan_detour *d)
{
	static struct outcome a, b;
	static uint8_t data[DATA_SIZE], stack[DATA_SIZE];
	int met;

	poke(t->addr, s->code, s->w.len);
	trial_execute(t, t->addr, &a);
	memcpy(data, (void *)DATA, DATA_SIZE);
	memcpy(stack, (void *)STACK, DATA_SIZE);
	window_forgive(s, &a, stack);
	poke(t->addr, d->d.jump, PLAN_JUMP_SIZE);
	*engine_count = 0;
	trial_execute(t, t->addr, &b);
	if (req->count)
		*engine_count = counted(req->count);
	window_forgive(s, &a, (uint8_t *)STACK);
	met = sequence_met(s, t, req->probes, &a);
	window_count(s, t, req, &a);
	if (!window_translate(d, &b))
		return window_differs(t, s, "place in the detour", &a, &b);
	if (memcmp(&a.cpu, &b.cpu, sizeof(a.cpu)) || a.signo != b.signo)
		return window_differs(t, s, "registers", &a, &b);
	if (a.signo == SIGSEGV && a.fault != b.fault)
		return window_differs(t, s, "fault address", &a, &b);
	if (!cpu_same_vectors(&a.x, &b.x))
		return window_differs(t, s, "vector state", &a, &b);
	if (memcmp(data, (void *)DATA, DATA_SIZE) || !window_same_stack(stack, t->cpu.gpr[4], s))
		return window_differs(t, s, "memory", &a, &b);
	if (!*engine_count || (met >= 0 && *engine_count != (uint32_t)met)) {
		printf("%u hits, not %d, probes %#x\n", *engine_count, met, req->probes);
		return window_differs(t, s, "hits", &a, &b);
	}
	return true;
}

/* Both runs of a window at t->addr.  False, with a report, where they differ. */
static inline bool window_run(struct trial *t, const struct sequence *s)
{
	static struct plan_detour d;
	struct plan_detour_request req = some_request(s, t);
	enum plan_refusal why = plan_detour(&req, &d);
	bool same;

	/* Five instructions, each with a probe and a branch, don't fit: once in a million. */
	if (why) {
		seen.refused += why == PLAN_OUT_OF_REACH;
		seen.too_long += why == PLAN_TOO_LONG;
		return why == PLAN_OUT_OF_REACH || why == PLAN_TOO_LONG;
	}
	engine_write(req.engine, d.shape.saves);
	poke(req.buf, d.code, d.d.size);
	same = window_compare(t, s, &req, &d);
	wipe(req.buf, d.d.size);
	wipe(t->addr, sizeof(s->code));
	return same;
}

static inline void window_report(const char *what)
{
	printf("%s, %lu windows: %lu with several probes, %lu light, %lu faults (%lu in the "
	       "detour), %lu branches, %lu far engines, %lu longer than the jump, %lu that count, "
	       "%lu hits; %lu out of reach, %lu too long\n",
	       what, seen.run, seen.several, seen.light, seen.faults, seen.translated,
	       seen.branches, seen.far, seen.longer, seen.counted, seen.hits, seen.refused,
	       seen.too_long);
	memset(&seen, 0, sizeof(seen));
}

#endif
