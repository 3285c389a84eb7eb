/* SPDX-License-Identifier: MIT */
/* The engine's memory as it is laid out: nothing overlaps, each stub finds its way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>

#include "engine/objpool.h"
#include "engine/signal.h"
#include "patch/area.h"
#include "plan/plan.h"

static void a_page_is_rounded_up_to(void **state)
{
	(void)state;
	assert_int_equal(area_page_up(0), 0);
	assert_int_equal(area_page_up(1), 4096);
	assert_int_equal(area_page_up(4096), 4096);
	assert_int_equal(area_page_up(4097), 8192);
}

static void the_parts_follow_each_other_without_overlap(void **state)
{
	static const uint32_t numbers[] = { 1, 64, 1000, 4096, AREA_INSTANCES };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const uint32_t n = numbers[i];
		struct ukp_priv priv;
		struct ukp_objpool pool;

		memset(&priv, 0xaa, sizeof(priv));
		memset(&pool, 0xaa, sizeof(pool));
		area_layout(&priv, &pool, n);
		assert_int_equal(priv.alive, 1);
		assert_true(priv.off_pool >= sizeof(priv));
		assert_true(priv.off_instances >= priv.off_pool + ukp_objpool_size(n, AREA_SHARDS));
		assert_true(priv.size >=
		            priv.off_instances + (uint64_t)n * sizeof(struct ukp_instance));
		assert_true(priv.size < priv.off_instances + AREA_PAGE +
		                                (uint64_t)n * sizeof(struct ukp_instance));
		assert_int_equal((priv.off_pool | priv.off_instances | priv.size) % AREA_PAGE, 0);
		assert_int_equal(pool.n, n);
		assert_int_equal(pool.nr_shards, AREA_SHARDS);
		/* behind the shards, and n links of it within the pool's size */
		assert_true(pool.off_next >= sizeof(pool) + AREA_SHARDS * sizeof(pool.shards[0]));
		assert_true(pool.off_next + n * sizeof(uint32_t) <=
		            ukp_objpool_size(n, AREA_SHARDS));
	}
}

/* A fork wipes the first page: what a child must keep is not in it. */
static void of_the_first_page_only_the_mark_is_used(void **state)
{
	struct ukp_objpool pool;
	struct ukp_priv priv;

	(void)state;
	area_layout(&priv, &pool, 1);
	assert_true(offsetof(struct ukp_priv, alive) < AREA_PAGE);
	assert_true(offsetof(struct ukp_priv, off_instances) >= AREA_PAGE);
	assert_true(offsetof(struct ukp_priv, off_pool) >= AREA_PAGE);
	assert_true(offsetof(struct ukp_priv, old) >= AREA_PAGE);
	assert_true(priv.off_pool >= AREA_PAGE);
}

static void each_stub_calls_the_way_out_and_that_leads_to_the_engine(void **state)
{
	const uint64_t at = 0x7f0000000000, engine = 0x123456789abcdef0;
	const uint64_t out = at + AREA_STUBS_PER_CHUNK * (uint64_t)UKP_STUB_SIZE;
	static const unsigned char way_in[] = {
		0x48, 0x8d, 0x64, 0x24, 0x78, 0xff, 0x54, 0x24, 0xf8
	};
	unsigned char *buf = malloc(AREA_STUB_CHUNK);
	const struct ukp_ctl ctl = { .stubs = at,
		                     .stub_chunk = AREA_STUB_CHUNK,
		                     .stubs_per_chunk = AREA_STUBS_PER_CHUNK };
	struct plan_insn insn;
	uint64_t to;

	(void)state;
	assert_non_null(buf);
	memset(buf, 0, AREA_STUB_CHUNK);
	area_stubs(buf, engine);
	for (uint32_t i = 0; i < AREA_STUBS_PER_CHUNK; i++) {
		const uint64_t stub = ukp_ctl_stub(&ctl, i) - at;

		assert_memory_equal(buf + stub - sizeof(way_in), way_in, sizeof(way_in));
		assert_memory_equal(buf + stub, "\x48\x8d\x64\x24\xf8", 5);
		assert_int_equal(plan_decode(buf + stub + 5, 8, at + stub + 5, &insn), PLAN_OK);
		assert_int_equal(insn.flow, PLAN_FLOW_CALL);
		assert_int_equal(insn.len, UKP_STUB_CALL - 5);
		assert_int_equal(insn.target, out);
		assert_memory_equal(buf + stub + UKP_STUB_CALL, "\xc3\xcc", 2);
	}
	assert_int_equal(plan_decode(buf + (out - at), 32, out, &insn), PLAN_OK);
	assert_int_equal(insn.flow, PLAN_FLOW_JMP_IND);
	assert_true(insn.mem && insn.base == 16);
	assert_in_range((uint64_t)insn.disp, at, at + AREA_STUB_CHUNK - 8);
	memcpy(&to, buf + ((uint64_t)insn.disp - at), 8);
	assert_int_equal(to, engine);
	free(buf);
}

static void there_are_stubs_for_all_instances(void **state)
{
	(void)state;
	assert_true((uint64_t)AREA_CHUNKS * AREA_STUBS_PER_CHUNK >= AREA_INSTANCES);
	assert_true((uint64_t)(AREA_CHUNKS - 1) * AREA_STUBS_PER_CHUNK < AREA_INSTANCES);
	assert_true(AREA_STUBS_PER_CHUNK * UKP_STUB_SIZE + 16 <= AREA_STUB_CHUNK);
}

static void the_flags_tell_what_the_cpu_has(void **state)
{
	uint32_t a, b, c = 0, d;
	bool rdpid = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 22 & 1;

	(void)state;
	assert_int_equal(area_cpu_flags(), UKP_CTL_DIRECT | (rdpid ? UKP_CTL_RDPID : 0));
}

static void handlers_stand_on_the_stack_that_the_program_chose(void **state)
{
	const uint64_t always = UKP_SA_SIGINFO | UKP_SA_NODEFER | UKP_SA_RESTORER;
	struct ukp_sigaction old = { .handler = UKP_SIG_DFL };

	(void)state;
	/* nobody's: ours is free to choose */
	assert_int_equal(area_signal_flags(UKP_SIGSEGV, &old), always | UKP_SA_ONSTACK);
	/* ignored: no call is interrupted by it */
	old.handler = UKP_SIG_IGN;
	assert_int_equal(area_signal_flags(UKP_SIGSEGV, &old),
	                 always | UKP_SA_ONSTACK | UKP_SA_RESTART);
	old.handler = 0x401000;
	assert_int_equal(area_signal_flags(UKP_SIGSEGV, &old), always);
	old.flags = UKP_SA_ONSTACK | UKP_SA_RESETHAND;
	assert_int_equal(area_signal_flags(UKP_SIGSEGV, &old), always | UKP_SA_ONSTACK);
	old.flags = UKP_SA_RESTART;
	assert_int_equal(area_signal_flags(UKP_SIGBUS, &old), always | UKP_SA_RESTART);
	/* a trap may come anywhere; what else the program wants of its own holds */
	assert_int_equal(area_signal_flags(UKP_SIGTRAP, &old),
	                 always | UKP_SA_ONSTACK | UKP_SA_RESTART);
	old.flags = 0;
	assert_int_equal(area_signal_flags(UKP_SIGTRAP, &old), always | UKP_SA_ONSTACK);
}

#define MASK 15

static struct {
	struct ukp_site_table head;
	uint32_t site[MASK + 1];
	uint32_t beyond;
} table;

/* Another address with the same first place. */
static uint64_t alike(uint64_t addr)
{
	uint64_t a = addr + 1;

	while ((ukp_site_hash(a) & MASK) != (ukp_site_hash(addr) & MASK))
		a++;
	return a;
}

static void a_site_goes_behind_older_ones_of_its_place(void **state)
{
	const uint64_t addr = 0x401000, other = alike(addr);
	const uint32_t first = ukp_site_hash(addr) & MASK;

	(void)state;
	memset(&table, 0, sizeof(table));
	area_table_put(&table.head, MASK, addr, 11);
	area_table_put(&table.head, MASK, other, 22);
	area_table_put(&table.head, MASK, addr, 33);
	assert_int_equal(table.head.site[first], 11);
	assert_int_equal(table.head.site[(first + 1) & MASK], 22);
	assert_int_equal(table.head.site[(first + 2) & MASK], 33);
}

static void the_last_place_is_followed_by_the_first(void **state)
{
	uint64_t addr = 0x401000;

	(void)state;
	memset(&table, 0, sizeof(table));
	while ((ukp_site_hash(addr) & MASK) != MASK)
		addr++;
	area_table_put(&table.head, MASK, addr, 1);
	area_table_put(&table.head, MASK, addr, 2);
	assert_int_equal(table.head.site[MASK], 1);
	assert_int_equal(table.head.site[0], 2);
	assert_int_equal(table.beyond, 0);
}

static void a_table_without_room_ends_the_search(void **state)
{
	(void)state;
	memset(&table, 0xff, sizeof(table));
	table.beyond = 7;
	area_table_put(&table.head, MASK, 0x401000, 5);
	/* somewhere in it, and nowhere else */
	assert_int_equal(table.beyond, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_rounded_up_to),
		cmocka_unit_test(the_parts_follow_each_other_without_overlap),
		cmocka_unit_test(of_the_first_page_only_the_mark_is_used),
		cmocka_unit_test(each_stub_calls_the_way_out_and_that_leads_to_the_engine),
		cmocka_unit_test(there_are_stubs_for_all_instances),
		cmocka_unit_test(the_flags_tell_what_the_cpu_has),
		cmocka_unit_test(handlers_stand_on_the_stack_that_the_program_chose),
		cmocka_unit_test(a_site_goes_behind_older_ones_of_its_place),
		cmocka_unit_test(the_last_place_is_followed_by_the_first),
		cmocka_unit_test(a_table_without_room_ends_the_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
