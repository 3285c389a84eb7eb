/* SPDX-License-Identifier: MIT */
/*
 * Random windows are executed as they are and under a jump, with an engine that
 * clobbers all it may, and compared: registers, flags, vectors, memory with the
 * red zone, and faults by the detour's map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>

#include "unit/plan/detouring.h"

#ifndef RANDOM_WINDOWS
#define RANDOM_WINDOWS 120000
#endif

static struct trial t;
static uint64_t fsbase;
static struct {
	unsigned long run, several, faults, branches, translated, hits, light, refused, far, longer,
		counted;
} seen;

static int setup(void **state)
{
	syscall(SYS_arch_prctl, ARCH_GET_FS, &fsbase);
	detouring_setup(state);
	engine_count = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return engine_count == (void *)0x10000000 ? 0 : -1;
}

static uint32_t some_saves(void)
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

static bool has_rdpid(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 22 & 1;
}

static struct plan_count counts;

static void count_setup(struct plan_count *c)
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

static uint32_t counted(const struct plan_count *c)
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

static struct plan_detour_request some_request(const struct sequence *s)
{
	const bool high = t.addr >= HIGH;
	struct plan_detour_request req = {
		.code = s->code,
		.addr = t.addr,
		.window = &s->w,
		.buf = (high ? HIGH : LOW) + DETOURS + below(TEXT_SIZE - PLAN_DETOUR_MAX),
		.engine = (below(2) ? HIGH : LOW) + CODE + ENGINE,
		.form = { some_saves(), below(2), false },
		.probes = (uint8_t)(1 | (below(3) ? 0 : rnd())),
	};

	req.form.near = high == (req.engine >= HIGH) && below(2);
	for (int i = 0; i < UKP_WINDOW_INSNS; i++)
		req.site[i] = rnd();
	if (!below(3)) {
		count_setup(&counts);
		req.count = &counts;
	}
	return req;
}

/* What came out of the detour, told as if it had happened in place. */
static bool translate(const struct plan_detour *d, struct outcome *o)
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

/* The stack but for what is below the red zone of every probe. */
static bool same_stack(const uint8_t *stack, uint64_t sp, const struct sequence *s)
{
	/* Each pop before the last probe raises sp by a word. */
	uint64_t top = sp + 8 * s->w.nr - 128 - STACK, bottom = sp - 128 - FRAME - STACK;

	if (bottom > DATA_SIZE)
		bottom = 0;
	return !memcmp(stack, (void *)STACK, bottom) &&
	       !memcmp(stack + top, (void *)(STACK + top), DATA_SIZE - top);
}

static bool differ(const struct sequence *s, const char *what, const struct outcome *a,
                   const struct outcome *b)
{
	sequence_print(s);
	t.n = 0;
	return trial_bad(&t, what, a, b);
}

static bool compare(const struct sequence *s, const struct plan_detour_request *req,
                    const struct plan_detour *d)
{
	static struct outcome a, b;
	static uint8_t data[DATA_SIZE], stack[DATA_SIZE];
	const struct plan_insn *last = &s->insn[s->w.nr - 1];
	int met;

	poke(t.addr, s->code, s->w.len);
	trial_execute(&t, t.addr, &a);
	memcpy(data, (void *)DATA, DATA_SIZE);
	memcpy(stack, (void *)STACK, DATA_SIZE);
	if (last->flow == PLAN_FLOW_CALL_IND && a.signo != SIGTRAP)
		memset(stack + (a.cpu.gpr[4] - 8 - STACK) % (DATA_SIZE - 8), 0xee, 8);
	poke(t.addr, d->d.jump, PLAN_JUMP_SIZE);
	*engine_count = 0;
	trial_execute(&t, t.addr, &b);
	if (req->count)
		*engine_count = counted(req->count);
	if (last->flow == PLAN_FLOW_CALL_IND && a.signo != SIGTRAP)
		memset((uint8_t *)STACK + (a.cpu.gpr[4] - 8 - STACK) % (DATA_SIZE - 8), 0xee, 8);
	met = sequence_met(s, &t, req->probes, &a);
	seen.run++;
	seen.several += (req->probes & ((1 << s->w.nr) - 1)) != 1;
	seen.light += req->form.saves != PLAN_SAVE_ALL;
	seen.faults += a.signo != SIGTRAP;
	seen.branches += a.signo == SIGTRAP && a.cpu.pc != t.addr + s->w.len + 1;
	seen.far += !req->form.near;
	seen.longer += s->w.insn[s->w.nr - 1].off >= PLAN_JUMP_SIZE;
	seen.counted += req->count != NULL;
	seen.hits += *engine_count;
	if (!translate(d, &b))
		return differ(s, "place in the detour", &a, &b);
	if (memcmp(&a.cpu, &b.cpu, sizeof(a.cpu)) || a.signo != b.signo)
		return differ(s, "registers", &a, &b);
	if (a.signo == SIGSEGV && a.fault != b.fault)
		return differ(s, "fault address", &a, &b);
	if (!cpu_same_vectors(&a.x, &b.x))
		return differ(s, "vector state", &a, &b);
	if (memcmp(data, (void *)DATA, DATA_SIZE) || !same_stack(stack, t.cpu.gpr[4], s))
		return differ(s, "memory", &a, &b);
	if (!*engine_count || (met >= 0 && *engine_count != (uint32_t)met)) {
		printf("%u hits, not %d, probes %#x\n", *engine_count, met, req->probes);
		return differ(s, "hits", &a, &b);
	}
	return true;
}

static void random_windows_under_a_jump_do_what_they_did(void **state)
{
	static struct plan_detour d;
	struct sequence s;

#ifdef __SANITIZE_ADDRESS__
	printf("skipped: what random code writes may be AddressSanitizer's own memory\n");
	skip();
#endif
	for (unsigned long i = 0; seen.run < RANDOM_WINDOWS; i++) {
		struct plan_detour_request req;
		enum plan_refusal why;

		if (i % 256 == 0)
			trial_state(&t);
		t.addr = (below(2) ? HIGH : LOW) + CODE + 0x400 + below(0x1000);
		if (!sequence_make(&s, &t, fsbase))
			continue;
		req = some_request(&s);
		why = plan_detour(&req, &d);
		if (why) {
			assert_int_equal(why, PLAN_OUT_OF_REACH);
			seen.refused++;
			continue;
		}
		engine_write(req.engine, d.shape.saves);
		poke(req.buf, d.code, d.d.size);
		assert_true(compare(&s, &req, &d));
		wipe(req.buf, d.d.size);
		wipe(t.addr, sizeof(s.code));
	}
	printf("%lu windows: %lu with several probes, %lu light, %lu faults (%lu in the detour), "
	       "%lu branches, %lu far engines, %lu longer than the jump, %lu that count, "
	       "%lu hits; %lu out of reach\n",
	       seen.run, seen.several, seen.light, seen.faults, seen.translated, seen.branches,
	       seen.far, seen.longer, seen.counted, seen.hits, seen.refused);
	assert_true(seen.longer > 1000 && seen.counted > 1000);
	assert_true(seen.translated > 100 && seen.several > 1000 && seen.branches > 1000);
}

/* An engine that sends the program elsewhere, with other registers. */
static struct {
	struct pt_regs seen, give;
	uint64_t site;
} sent;

__attribute__((target("general-regs-only"), no_sanitize("undefined", "address"), used)) static int
sends(struct pt_regs *regs, void *site)
{
	sent.seen = *regs;
	sent.site = (uint64_t)site;
	*regs = sent.give;
	return 1;
}

static void expect_regs(const struct pt_regs *r, const struct cpu *c)
{
	const uint64_t want[15] = { c->gpr[15], c->gpr[14], c->gpr[13], c->gpr[12], c->gpr[5],
		                    c->gpr[3],  c->gpr[11], c->gpr[10], c->gpr[9],  c->gpr[8],
		                    c->gpr[0],  c->gpr[1],  c->gpr[2],  c->gpr[6],  c->gpr[7] };

	assert_memory_equal(r, want, sizeof(want));
	assert_int_equal(r->sp, c->gpr[4]);
	assert_int_equal(r->orig_ax, -1UL);
	assert_int_equal(r->cs, 0x33);
	assert_int_equal(r->ss, 0x2b);
}

static void an_engine_sees_the_registers_and_may_go_anywhere(void **state)
{
	static struct plan_detour d;
	static struct outcome o, plain;
	struct sequence s;

	for (int i = 0; i < 2000; i++) {
		struct plan_detour_request req;
		uint64_t *give = (uint64_t *)&sent.give;

		if (i % 64 == 0)
			trial_state(&t);
		t.addr = (below(2) ? HIGH : LOW) + CODE + 0x400 + below(0x1000);
		if (!sequence_make(&s, &t, fsbase))
			continue;
		req = some_request(&s);
		req.form = (struct plan_form){ PLAN_SAVE_ALL, true, false };
		req.count = NULL;
		req.engine = (uint64_t)sends;
		if (plan_detour(&req, &d))
			continue;
		poke(t.addr, s.code, s.w.len);
		poke(t.addr, d.d.jump, PLAN_JUMP_SIZE);
		poke(req.buf, d.code, d.d.size);
		for (int k = 0; k < UKP_DETOUR_WORDS; k++)
			give[k] = rnd();
		sent.give.cs = 0x33;
		sent.give.ss = 0x2b;
		sent.give.flags = trial_flags();
		sent.give.ip = trial_target(&t);
		if (below(2)) /* near our own frame */
			sent.give.sp = t.cpu.gpr[4] - 8 * below(64);
		trial_execute(&t, sent.give.ip, &plain);
		trial_execute(&t, t.addr, &o);
		expect_regs(&sent.seen, &t.cpu);
		assert_int_equal(sent.seen.ip, t.addr + 1);
		assert_int_equal(sent.seen.flags, t.cpu.flags);
		assert_int_equal(sent.site, req.site[0]);
		assert_int_equal(o.signo, SIGTRAP);
		assert_int_equal(o.cpu.pc, sent.give.ip + 1);
		assert_int_equal(o.cpu.flags, sent.give.flags);
		{
			struct pt_regs *g = &sent.give;
			const uint64_t *gpr = o.cpu.gpr;

			assert_int_equal(gpr[4], g->sp);
			assert_true(gpr[0] == g->ax && gpr[1] == g->cx && gpr[2] == g->dx &&
			            gpr[3] == g->bx && gpr[5] == g->bp && gpr[6] == g->si &&
			            gpr[7] == g->di && gpr[8] == g->r8 && gpr[9] == g->r9 &&
			            gpr[10] == g->r10 && gpr[11] == g->r11 && gpr[12] == g->r12 &&
			            gpr[13] == g->r13 && gpr[14] == g->r14 && gpr[15] == g->r15);
		}
		assert_true(cpu_same_vectors(&plain.x, &o.x));
		assert_true(same_stack(t.stack, t.cpu.gpr[4], &s));
		wipe(req.buf, d.d.size);
		wipe(t.addr, sizeof(s.code));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_windows_under_a_jump_do_what_they_did),
		cmocka_unit_test(an_engine_sees_the_registers_and_may_go_anywhere),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
