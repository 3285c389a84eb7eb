/* SPDX-License-Identifier: MIT */
/*
 * What a fault handler of the program gets to see of a fault in generated code,
 * and where it goes on when the handler says "again".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "engine/hit.h"
#include "engine/signal.h"
#include "lib/hit/hit.h"
#include "plan/detour.h"

#define ADDR 0x10000000UL
#define FAR 0x7e0000000000UL
#define NEAR 0x10100000UL

static struct {
	struct ukp_ctl ctl;
	struct {
		struct ukp_site_table head;
		uint32_t site[8];
	} table;
	struct ukp_site slot_site;
	struct ukp_detour newest;
	struct plan_detour detour;
} area;

static uint8_t *text; /* at ADDR */

static struct ukp_priv priv;
static struct ukp_ucontext uc, seen;
static uint64_t stack[64];
static void (*change)(struct ukp_ucontext *uc);

static void on_fault(int sig, struct ukp_siginfo *info, struct ukp_ucontext *context)
{
	(void)sig, (void)info;
	seen = *context;
	if (change)
		change(context);
}

static uint32_t offset(const void *p)
{
	return (uint32_t)((const char *)p - (const char *)&area);
}

/* mov m,%eax at ADDR, with its copy so far away that %rsi is borrowed */
static void plant_slot(void)
{
	static const uint8_t code[] = { 0x8b, 0x05, 0xfa, 0x0f, 0, 0 };
	struct plan_request req = { code, sizeof(code), ADDR, FAR, 0 };
	uint8_t out[UKP_SLOT_SIZE];

	assert_int_equal(plan_copy(&req, out, &area.slot_site), PLAN_OK);
	area.table.site[0] = offset(&area.slot_site);
}

/* push %rbp; mov (%rsi),%eax; xor %edx,%edx under a jump */
static void plant_detour(void)
{
	static const uint8_t code[] = { 0x55, 0x8b, 0x06, 0x31, 0xd2 };
	static struct plan_window w = {
		.nr = 3, .len = 5, .covered = 5, .insn = { { 0, 1 }, { 1, 2 }, { 3, 2 } }
	};
	struct plan_detour_request req = {
		.code = code,
		.addr = ADDR + 0x100,
		.window = &w,
		.buf = NEAR,
		.engine = FAR,
		.form = { PLAN_SAVE_ALL, true, false, false },
		.probes = 1,
	};

	assert_int_equal(plan_detour(&req, &area.detour), PLAN_OK);
	area.detour.d.shape = offset(&area.detour.shape);
	/* behind another one, which is nowhere */
	area.newest = area.detour.d;
	area.newest.addr = area.newest.buf = FAR + 0x8000;
	area.newest.next = offset(&area.detour.d);
	area.ctl.detours = offset(&area.newest);
}

static int setup(void **state)
{
	(void)state;
	if (!text)
		text = mmap((void *)ADDR, 4096, PROT_READ | PROT_WRITE,
		            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(text, (void *)ADDR);
	memset(text, 0x90, 4096);
	memset(&area, 0, sizeof(area));
	area.ctl.priv = (uint64_t)&priv;
	area.ctl.sites = offset(&area.table);
	area.table.head.mask = 7;
	plant_slot();
	plant_detour();
	area.ctl.nr_mappings = 2;
	area.ctl.mapping[0] =
		(struct ukp_mapping){ .addr = FAR, .len = 0x10000, .kind = UKP_MAP_SLOTS };
	area.ctl.mapping[1] =
		(struct ukp_mapping){ .addr = NEAR, .len = 0x10000, .kind = UKP_MAP_SLOTS };
	ukp_lib_ctl = &area.ctl;
	*ukp_old_action(&area.ctl, UKP_SIGSEGV) =
		(struct ukp_sigaction){ .handler = (uint64_t)on_fault,
		                        .flags = UKP_SA_SIGINFO | UKP_SA_NODEFER };
	memset(&uc, 0, sizeof(uc));
	uc.sp = (uint64_t)&stack[16];
	uc.si = 0x5151;
	change = NULL;
	return 0;
}

static void fault_at(uint64_t pc)
{
	struct ukp_siginfo info = { .si_signo = UKP_SIGSEGV, .si_code = 1 };

	uc.ip = pc;
	memset(&seen, 0, sizeof(seen));
	ukp_fault(UKP_SIGSEGV, &info, &uc);
}

static void a_borrowed_register_is_seen_as_it_was(void **state)
{
	(void)state;
	stack[16] = 0xabcdef;
	fault_at(FAR + 16);
	assert_int_equal(seen.ip, ADDR);
	assert_int_equal(seen.sp, &stack[16 + 17]);
	assert_int_equal(seen.si, 0xabcdef);
	/* again, from the start of the slot and with all registers as they were */
	assert_int_equal(uc.ip, FAR);
	assert_int_equal(uc.sp, &stack[16 + 17]);
	assert_int_equal(uc.si, 0xabcdef);
}

static void other_si(struct ukp_ucontext *context)
{
	context->si = 77;
}

static void a_borrowed_register_is_what_the_handler_makes_it(void **state)
{
	(void)state;
	change = other_si;
	fault_at(FAR + 16);
	assert_int_equal(uc.ip, FAR);
	assert_int_equal(uc.si, 77);
}

static void go_on_behind(struct ukp_ucontext *context)
{
	context->ip += 6;
}

static void a_handler_that_goes_elsewhere_gets_there(void **state)
{
	(void)state;
	change = go_on_behind;
	fault_at(FAR + 16);
	assert_int_equal(uc.ip, ADDR + 6);
	assert_int_equal(uc.sp, &stack[16 + 17]);
}

static void a_fault_of_a_push_in_a_slot_is_the_instructions(void **state)
{
	(void)state;
	fault_at(FAR + 5);
	assert_int_equal(seen.ip, ADDR);
	assert_int_equal(seen.sp, &stack[16 + 16]);
	assert_int_equal(seen.si, 0x5151);
	assert_int_equal(uc.ip, FAR + 5);
	assert_int_equal(uc.sp, &stack[16]);
}

static void go_into_the_window(struct ukp_ucontext *context)
{
	context->ip = ADDR + 0x103;
}

static void a_handler_that_means_what_a_jump_has_taken_gets_its_copy(void **state)
{
	const uint64_t to = NEAR + area.detour.d.insn[2].copy;

	(void)state;
	change = go_into_the_window;
	/* only while the jump is there */
	fault_at(0x4321);
	assert_int_equal(uc.ip, ADDR + 0x103);
	memcpy(text + 0x100, area.detour.d.jump, sizeof(area.detour.d.jump));
	fault_at(0x4321);
	assert_int_equal(uc.ip, to);
	fault_at(FAR + 16);
	assert_int_equal(uc.ip, to);
	fault_at(NEAR + area.detour.d.insn[1].copy);
	assert_int_equal(uc.ip, to);
	/* who changes nothing goes on where it was */
	change = NULL;
	fault_at(ADDR + 0x103);
	assert_int_equal(uc.ip, ADDR + 0x103);
}

static void a_fault_in_a_detours_copy_is_the_instructions(void **state)
{
	uint64_t copy = NEAR + area.detour.d.insn[1].copy;

	(void)state;
	fault_at(copy);
	assert_int_equal(seen.ip, ADDR + 0x101);
	assert_int_equal(seen.sp, &stack[16]);
	assert_int_equal(uc.ip, copy);
}

static void a_fault_elsewhere_is_told_as_it_is(void **state)
{
	(void)state;
	fault_at(ADDR + 0x5000);
	assert_int_equal(seen.ip, ADDR + 0x5000);
	assert_int_equal(uc.ip, ADDR + 0x5000);
	fault_at(FAR + 0x2000); /* nobody's slot */
	assert_int_equal(seen.ip, FAR + 0x2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_borrowed_register_is_seen_as_it_was, setup),
		cmocka_unit_test_setup(a_borrowed_register_is_what_the_handler_makes_it, setup),
		cmocka_unit_test_setup(a_handler_that_goes_elsewhere_gets_there, setup),
		cmocka_unit_test_setup(a_fault_of_a_push_in_a_slot_is_the_instructions, setup),
		cmocka_unit_test_setup(a_handler_that_means_what_a_jump_has_taken_gets_its_copy,
		                       setup),
		cmocka_unit_test_setup(a_fault_in_a_detours_copy_is_the_instructions, setup),
		cmocka_unit_test_setup(a_fault_elsewhere_is_told_as_it_is, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
