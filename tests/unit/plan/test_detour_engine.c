/* SPDX-License-Identifier: MIT */
/* What an engine is given in a detour, and where it may send the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <asm/prctl.h>
#include <sys/syscall.h>

#include "unit/plan/windows.h"
#include "wire/ctl.h"

static struct trial t;
static uint64_t fsbase;

static int setup(void **state)
{
	syscall(SYS_arch_prctl, ARCH_GET_FS, &fsbase);
	return detouring_setup(state);
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
		req = some_request(&s, &t);
		req.form = (struct plan_form){ PLAN_SAVE_ALL, true, false, false };
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
		assert_true(window_same_stack(t.stack, t.cpu.gpr[4], &s));
		wipe(req.buf, d.d.size);
		wipe(t.addr, sizeof(s.code));
	}
}

/* A stub's way in, and what is in the frame's word from then on. */
#define WAY_IN 0x1d00UL /* in the code arena */

static const uint8_t way_in[UKP_STUB_WAY_IN] = { 0x48, 0x8d, 0x64, 0x24, 0x78,
	                                         0xff, 0x54, 0x24, 0xf8 };
static uint64_t way;
static unsigned long called;

__attribute__((target("general-regs-only"), no_sanitize("undefined", "address"), used)) static int
calls(struct pt_regs *regs, void *site)
{
	called++;
	regs->ss = way;
	return -1;
}

/* A form that may call, with an engine that wants to. */
static bool call_request(const struct sequence *s, struct plan_detour_request *req)
{
	*req = some_request(s, &t);
	req->form = (struct plan_form){ PLAN_SAVE_CALL | (below(2) ? some_saves() : 0), below(2),
		                        false, true };
	req->count = NULL;
	req->probes = 1;
	req->engine = 0; /* other entries' */
	req->entry = (uint64_t)calls;
	way = (t.addr >= HIGH ? HIGH : LOW) + CODE + WAY_IN;
	poke(way, way_in, sizeof(way_in));
	return true;
}

/*
 * Everything that the function sees but its return address is as if it had been
 * called, down to the red zone; and that is the stub, wherever it looks.
 */
static void what_is_called_in_place_sees_the_stub_and_nothing_else(void **state)
{
	static uint8_t data[DATA_SIZE], stack[DATA_SIZE];
	static struct plan_detour d;
	static struct outcome a, b;
	unsigned long run = 0;
	struct sequence s;

	for (int i = 0; i < 6000; i++) {
		struct plan_detour_request req;
		uint64_t stub, word, at;

		if (i % 64 == 0)
			trial_state(&t);
		t.addr = (below(2) ? HIGH : LOW) + CODE + 0x400 + below(0x1000);
		if (!sequence_make(&s, &t, fsbase) || !call_request(&s, &req) ||
		    plan_detour(&req, &d))
			continue;
		at = t.cpu.gpr[4] - STACK;
		stub = way + UKP_STUB_WAY_IN;
		memcpy(&word, t.stack + at, 8);
		memcpy(t.stack + at, &stub, 8);
		poke(t.addr, s.code, s.w.len);
		trial_execute(&t, t.addr, &a);
		memcpy(data, (void *)DATA, DATA_SIZE);
		memcpy(stack, (void *)STACK, DATA_SIZE);
		memcpy(t.stack + at, &word, 8);
		poke(t.addr, d.d.jump, PLAN_JUMP_SIZE);
		poke(req.buf, d.code, d.d.size);
		called = 0;
		trial_execute(&t, t.addr, &b);
		assert_int_equal(called, 1);
		assert_true(window_translate(&d, &b));
		if (memcmp(&a.cpu, &b.cpu, sizeof(a.cpu)) || a.signo != b.signo)
			assert_true(window_differs(&t, &s, "registers", &a, &b));
		assert_true(cpu_same_vectors(&a.x, &b.x));
		window_forgive(&s, &a, stack);
		window_forgive(&s, &a, (uint8_t *)STACK);
		assert_memory_equal(data, (void *)DATA, DATA_SIZE);
		assert_true(window_same_stack(stack, t.cpu.gpr[4], &s));
		wipe(req.buf, d.d.size);
		wipe(t.addr, sizeof(s.code));
		run++;
	}
	wipe(way, sizeof(way_in));
	assert_true(run > 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_sees_the_registers_and_may_go_anywhere),
		cmocka_unit_test(what_is_called_in_place_sees_the_stub_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
