/* SPDX-License-Identifier: MIT */
/*
 * A call in place as a target's detour makes it (engine/detour.c), and its slot
 * overwrite: at each instruction of it, from before the jump to behind the return, a
 * handler does to the calls of the thread what unwinders do.  It ends the call or
 * leaves it, and whatever it does the function gets and gives the same, and the
 * accounts are right.  test_call.c has the same of the library's jumps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <cmocka.h>

#include "engine/follow.h"
#include "engine/rethook.h"
#include "lib/lib.h"
#include "plan/detour.h"
#include "ukprobes/kprobes.h"
#include "ukprobes/rethook.h"

#define TF 0x100

/* rdi + 1 in ax, rsi - 1 in dx: the first two instructions are under the jump. */
__asm__(".text\n"
        ".balign 64\n"
        ".type followed, @function\n"
        "followed:\n"
        "	lea	1(%rdi), %rax\n"
        "	lea	-1(%rsi), %rdx\n"
        "	nop\n"
        "	ret\n"
        ".size followed, . - followed\n");
unsigned __int128 followed(unsigned long a, unsigned long b);
#define RET_AT 9

static __attribute__((noinline)) long has_the_unwinder_probed(long a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}

static struct kretprobe other = {
	.kp.addr = (kprobe_opcode_t *)(uintptr_t)has_the_unwinder_probed,
};

/* --- a step, and what is done there --------------------------------------------------- */

static struct ukp_stat stat;
static unsigned long returns, unwound;
static unsigned long steps, from, looked;
static bool came_back;      /* the function is at its ret, or was */
static unsigned long early; /* calls ended before that, while no stub was in their word */
static uint64_t *volatile frame;
static void (*walk)(void);

static void stepped(int sig, siginfo_t *info, void *context)
{
	const greg_t ip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	const unsigned long before = unwound;
	const bool stub = frame && ukp_rethook_index(ukp_lib_ctl, *frame) != UINT32_MAX;

	came_back |= (uintptr_t)ip == (uintptr_t)followed + RET_AT;
	if (++steps < from)
		return;
	looked = steps;
	walk();
	if (unwound == before)
		return;
	from = UINT64_MAX; /* that was enough for this run */
	early += !came_back && !stub;
}

static inline __attribute__((always_inline)) void step_flag(bool on)
{
	uint64_t flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags) : : "memory");
	flags = on ? flags | TF : flags & ~(uint64_t)TF;
	__asm__ volatile("push %0; popfq" : : "r"(flags) : "memory", "cc");
}

static __attribute__((noinline)) unsigned __int128 step(void)
{
	unsigned __int128 (*volatile fn)(unsigned long, unsigned long) = followed;
	unsigned __int128 got;

	steps = 0;
	came_back = false;
	frame = NULL;
	step_flag(true);
	got = fn(3, 4);
	step_flag(false);
	return got;
}

/* --- the probe ---------------------------------------------------------------------- */

static struct ukp_site site;
static struct ukp_action *action;

static int at_return(struct ukp_hit *hit, uint64_t ctx)
{
	if (hit->flags & UKP_HIT_UNWOUND) {
		ukp_count(&stat.miss[UKP_MISS_UNWOUND]);
		unwound++;
	} else {
		assert_int_equal(hit->regs->ax, 4);
		assert_int_equal(hit->inst->data[0], 77);
		returns++;
	}
	return 0;
}

static int at_entry(struct ukp_hit *hit, uint64_t ctx)
{
	frame = (uint64_t *)hit->regs->sp;
	ukp_follow(hit, at_return, 0, 77, &stat);
	return 0;
}

static void write_jump(const unsigned char *jump)
{
	unsigned char *at = (unsigned char *)(uintptr_t)followed;
	unsigned char *page = (unsigned char *)((uintptr_t)at & ~4095ul);

	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(at, jump, PLAN_JUMP_SIZE);
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_EXEC), 0);
}

static void plant_detour(void)
{
	static const struct plan_window w = {
		.nr = 2, .len = 8, .covered = 8, .insn = { { 0, 4 }, { 4, 4 } }
	};
	static struct plan_detour out;
	unsigned char *at = (unsigned char *)(uintptr_t)followed;
	unsigned char *room = mmap((void *)(((uintptr_t)at & ~4095ul) + (64 << 20)), 4096,
	                           PROT_READ | PROT_WRITE | PROT_EXEC,
	                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct plan_detour_request req = {
		.code = at,
		.addr = (uintptr_t)at,
		.window = &w,
		.buf = (uintptr_t)room,
		.engine = (uintptr_t)ukp_detour_hit,
		.entry = (uintptr_t)ukp_detour_entry,
		.form = { .saves = PLAN_SAVE_CALL | PLAN_SAVE(sp), .near = true, .call = true },
		.probes = 1,
		.site = { (uintptr_t)&site },
	};

	assert_true(room != MAP_FAILED);
	assert_int_equal(plan_detour(&req, &out), PLAN_OK);
	memcpy(room, out.code, out.d.size);
	/* Where the frame's word points for two instructions of a call in place. */
	ukp_lib_ctl->mapping[ukp_lib_ctl->nr_mappings++] =
		(struct ukp_mapping){ (uint64_t)room, 4096, UKP_MAP_SLOTS, 0 };
	write_jump(out.d.jump);
}

static int setup(void **state)
{
	struct sigaction sa = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
	void *callers[4];
	uint32_t off;

	backtrace(callers, 4); /* loads the unwinder */
	/* SIGTRAP must be free when the engine starts; from then on it keeps our handler. */
	if (register_kretprobe(&other))
		fail_msg("%s", ukp_kprobe_error());
	off = own_alloc(sizeof(*action));
	action = ukp_ctl_at(ukp_lib_ctl, off);
	*action = (struct ukp_action){ .fn = (uintptr_t)at_entry };
	site.addr = (uintptr_t)followed;
	site.action = off;
	plant_detour();
	return sigaction(SIGTRAP, &sa, NULL);
}

/* --- tests ---------------------------------------------------------------------------- */

static uint32_t instances_in_use(void)
{
	const struct ukp_instance *all = ukp_rethook_instances(ukp_lib_ctl);
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		n += all[i].state != UKP_INST_FREE;
	return n;
}

/* Where the handler ends the call, a run ends with that and the next goes on behind it. */
static void look_everywhere(void (*how)(void), uint32_t flags)
{
	unsigned long n = 0, next = 1;
	unsigned __int128 got;

	action->flags = flags;
	memset(&stat, 0, sizeof(stat));
	returns = unwound = early = 0;
	walk = how;
	do {
		from = next;
		looked = 0;
		got = step();
		next = looked + 1;
		assert_int_equal((unsigned long)got, 4);
		assert_int_equal((unsigned long)(got >> 64), 3);
		assert_int_equal(stat.hits, ++n);
		assert_int_equal(returns + unwound, n);
		assert_int_equal(stat.miss[UKP_MISS_UNWOUND], unwound);
		assert_int_equal(instances_in_use(), 0);
	} while (from == UINT64_MAX);
	assert_true(looked > 200 && n > 5);
	assert_int_equal(returns, 1);
	assert_int_equal(early, 0);
}

static void walk_the_stack(void)
{
	void *callers[16];

	backtrace(callers, 16);
}

static void give_up_the_dead(void)
{
	rethook_flush_task(NULL);
}

static void a_call_in_place_is_ended_or_left_by_who_walks_the_stack(void **state)
{
	look_everywhere(walk_the_stack, 0);
}

static void a_call_in_place_is_not_given_up_before_it_begins(void **state)
{
	look_everywhere(give_up_the_dead, 0);
}

static void so_it_is_where_slots_are_asked_for(void **state)
{
	look_everywhere(walk_the_stack, UKP_ACTION_SLOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_in_place_is_ended_or_left_by_who_walks_the_stack),
		cmocka_unit_test(a_call_in_place_is_not_given_up_before_it_begins),
		cmocka_unit_test(so_it_is_where_slots_are_asked_for),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
