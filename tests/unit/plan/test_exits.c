/* SPDX-License-Identifier: MIT */
/* The exits of functions, by bytes: each kind, and each reason not to know them. */
#include "unit/plan/toy_module.h"

#include "plan/exits.h"

#include <errno.h>

static struct toy toy;
static struct plan_exits *x;
static struct plan_pad pad[4];
static size_t nr_pads;
static size_t deep,
	bare_until = SIZE_MAX; /* offsets: where something is pushed; the end of the CFI */

static bool toy_cfa(void *arg, uint64_t pc, unsigned int *reg, int64_t *off)
{
	*reg = 7;
	*off = deep && pc == CODE_AT + deep ? 16 : 8;
	return pc - CODE_AT < bare_until;
}

static int done(void **state)
{
	plan_exits_free(x);
	plan_targets_free(toy.t);
	x = NULL;
	toy.t = NULL;
	nr_pads = 0;
	deep = 0;
	bare_until = SIZE_MAX;
	return 0;
}

/* Functions have names unless a test says otherwise. */
static void make(void)
{
	struct plan_exits_request req = {
		.module = &toy.m, .pad = pad, .nr_pads = nr_pads, .cfa = toy_cfa
	};

	toy_make(&toy);
	req.targets = toy.t;
	assert_int_equal(plan_exits_new(&x, &req), 0);
}

static void named(size_t start, size_t end)
{
	toy_func(&toy, start, end, false);
	toy.func[toy.m.nr_funcs - 1].named = true;
}

static const struct plan_function *fn(size_t off)
{
	const struct plan_function *f = plan_exits_find(x, CODE_AT + off);

	assert_non_null(f);
	return f;
}

static enum plan_exits_why why(size_t off)
{
	const struct plan_function *f = fn(off);

	if (f->why)
		assert_int_equal(f->nr_exits, 0);
	return f->why;
}

static const struct plan_way_out *way(size_t off, unsigned int i)
{
	const struct plan_function *f = fn(off);

	assert_int_equal(f->why, PLAN_EXITS_OK);
	assert_true(i < f->nr_exits);
	return &plan_exits_ways(x, f)[i];
}

static void expect_way(size_t off, unsigned int i, size_t at, enum plan_way_kind kind)
{
	assert_int_equal(way(off, i)->addr, CODE_AT + at);
	assert_int_equal(way(off, i)->kind, kind);
}

static void returns_are_exits_with_what_they_pop(void **state)
{
	/* 0 je 5; 2 ret $16; 5 ret */
	TOY(&toy, 0x74, 3, 0xc2, 16, 0, 0xc3);
	named(0, 6);
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	expect_way(0, 0, 2, PLAN_WAY_RET);
	assert_int_equal(way(0, 0)->pops, 16);
	assert_int_equal(way(0, 0)->len, 3);
	expect_way(0, 1, 5, PLAN_WAY_RET);
	assert_int_equal(way(0, 1)->pops, 0);
	assert_int_equal(fn(0)->nr_tails, 0);
}

static void jumps_to_other_functions_are_exits(void **state)
{
	/* 0 je 8; 2 jmp 8; 4 ud2 | 8 ret */
	TOY(&toy, 0x74, 6, 0xeb, 4, 0x0f, 0x0b, 0x90, 0x90, 0xc3);
	named(0, 6);
	named(8, 9);
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	assert_int_equal(fn(0)->nr_tails, 2);
	expect_way(0, 0, 0, PLAN_WAY_TAIL);
	assert_true(way(0, 0)->conditional);
	assert_int_equal(way(0, 0)->target, CODE_AT + 8);
	expect_way(0, 1, 2, PLAN_WAY_TAIL);
	assert_false(way(0, 1)->conditional);
	expect_way(8, 0, 8, PLAN_WAY_RET);
}

static void a_jump_by_pointer_from_an_empty_frame_is_an_exit(void **state)
{
	/* mov (%rdi),%rax; jmp *16(%rax) */
	TOY(&toy, 0x48, 0x8b, 0x07, 0xff, 0x60, 0x10);
	named(0, 6);
	toy.bare = CODE_AT + 3;
	make();
	assert_int_equal(fn(0)->nr_exits, 1);
	expect_way(0, 0, 3, PLAN_WAY_TAIL_INDIRECT);
	assert_int_equal(way(0, 0)->target, 0);
	done(state);
	/* the same with a frame */
	TOY(&toy, 0x48, 0x8b, 0x07, 0xff, 0x60, 0x10);
	named(0, 6);
	make();
	assert_int_equal(why(0), PLAN_EXITS_INDIRECT);
	assert_int_equal(fn(0)->where, CODE_AT + 3);
}

static void a_jump_to_a_computed_address_is_no_exit_even_from_an_empty_frame(void **state)
{
	static const struct {
		uint8_t insn[4];
		bool ok;
	} how[] = {
		{ { 0x48, 0x89, 0xd0, 0x90 }, true },  /* mov %rdx,%rax */
		{ { 0x48, 0x01, 0xd0, 0x90 }, false }, /* add %rdx,%rax */
		{ { 0x48, 0x83, 0xc0, 16 }, false },   /* add $16,%rax */
		{ { 0x48, 0x8d, 0x42, 16 }, false },   /* lea 16(%rdx),%rax */
		{ { 0x48, 0x8b, 0x42, 16 }, true },    /* mov 16(%rdx),%rax */
		{ { 0x48, 0x83, 0xf8, 16 }, true },    /* cmp $16,%rax */
	};

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		TOY(&toy, 0, 0, 0, 0, 0xff, 0xe0);
		memcpy(toy.code, how[i].insn, 4);
		named(0, 6);
		toy.bare = CODE_AT + 4;
		make();
		assert_int_equal(why(0), how[i].ok ? PLAN_EXITS_OK : PLAN_EXITS_INDIRECT);
		done(state);
	}
}

/* 0 cmp $bound,%edi; 3 ja 24; 5 lea DATA(%rip),%rdx; 12 movslq (%rdx,%rdi,4),%rax;
 * 16 add %rdx,%rax; 19 nop; 20 jmp *%rax; 22 ret; 23 nop; 24 ret | 25 ret */
static void make_switch(uint8_t bound)
{
	TOY(&toy, 0x83, 0xff, bound, 0x77, 19, 0x48, 0x8d, 0x15, 0xf4, 0x6f, 0, 0, 0x48, 0x63, 0x04,
	    0xba, 0x48, 0x01, 0xd0, 0x90, 0xff, 0xe0, 0xc3, 0x90, 0xc3, 0xc3);
	named(0, 25);
	toy_entry(&toy, 22);
	toy_entry(&toy, 23);
}

static void a_switch_is_no_exit(void **state)
{
	make_switch(1);
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	expect_way(0, 0, 22, PLAN_WAY_RET);
	expect_way(0, 1, 24, PLAN_WAY_RET);
	assert_int_equal(fn(0)->flags, PLAN_FN_SWITCH);
	done(state);
	make_switch(5); /* its table is shorter */
	make();
	assert_int_equal(why(0), PLAN_EXITS_INDIRECT);
}

static void a_cold_part_that_only_a_table_leads_to_belongs_to_the_body(void **state)
{
	make_switch(2);
	toy_func(&toy, 25, 26, true);
	toy_entry(&toy, 25);
	make();
	assert_int_equal(fn(0)->nr_exits, 3);
	expect_way(0, 2, 25, PLAN_WAY_RET);
	assert_int_equal(fn(0)->nr_ranges, 2);
	assert_int_equal(plan_exits_body(x, fn(0))[1].start, CODE_AT + 25);
	assert_int_equal(fn(0)->flags, PLAN_FN_SWITCH | PLAN_FN_PARTS);
}

static void cold_parts_belong_to_the_body(void **state)
{
	/* 0 je 4; 2 jmp 6 (nop; ret) ; 4 jmp 8 | 8 je 11; 10 ret; 11 jmp 6 */
	TOY(&toy, 0x74, 2, 0xeb, 2, 0xeb, 2, 0x90, 0xc3, 0x74, 1, 0xc3, 0xeb, 0xf9);
	named(0, 8);
	toy_func(&toy, 8, 13, true);
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	expect_way(0, 0, 7, PLAN_WAY_RET);
	expect_way(0, 1, 10, PLAN_WAY_RET);
	assert_null(plan_exits_find(x, CODE_AT + 8));
}

static void a_part_that_only_the_unwinder_enters_belongs_to_the_body(void **state)
{
	TOY(&toy, 0x90, 0xc3, 0x90, 0xc3);
	named(0, 2);
	toy_func(&toy, 2, 4, true);
	toy.extra[0] = CODE_AT + 3;
	toy.m.nr_extra = 1;
	pad[nr_pads++] = (struct plan_pad){ CODE_AT, CODE_AT + 3 };
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	expect_way(0, 1, 3, PLAN_WAY_RET);
}

static void a_part_of_two_functions_leaves_both_unknown(void **state)
{
	/* 0 je 6; 2 ret; 3 je 6; 5 ret | 6 ret */
	TOY(&toy, 0x74, 4, 0xc3, 0x74, 1, 0xc3, 0xc3);
	named(0, 3);
	named(3, 6);
	toy_func(&toy, 6, 7, true);
	make();
	assert_int_equal(why(0), PLAN_EXITS_ENTERED);
	assert_int_equal(why(3), PLAN_EXITS_ENTERED);
}

static void a_shared_tail_leaves_both_unknown(void **state)
{
	/* 0 je 5; 2 ret | 3 nop; 4 nop; 5 ret | 6 ret */
	TOY(&toy, 0x74, 3, 0xc3, 0x90, 0x90, 0xc3, 0xc3);
	named(0, 3);
	named(3, 6);
	named(6, 7);
	make();
	assert_int_equal(why(0), PLAN_EXITS_SHARES);
	assert_int_equal(fn(0)->where, CODE_AT);
	assert_int_equal(why(3), PLAN_EXITS_ENTERED);
	assert_int_equal(fn(3)->where, CODE_AT);
	assert_int_equal(why(6), PLAN_EXITS_OK);
}

/* A static function may be called by code that no bounds describe. */
static void code_in_no_function_may_enter_too(void **state)
{
	/* 0 nop; 1 ret | 2 jmp 1 */
	TOY(&toy, 0x90, 0xc3, 0xeb, 0xfd);
	named(0, 2);
	make();
	assert_int_equal(why(0), PLAN_EXITS_ENTERED);
	assert_int_equal(fn(0)->where, CODE_AT + 2);
}

static void a_call_into_the_middle_leaves_it_unknown(void **state)
{
	/* 0 call 6; 5 ret; 6 ret */
	TOY(&toy, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3);
	named(0, 7);
	make();
	assert_int_equal(why(0), PLAN_EXITS_ENTERED);
}

static void a_place_whose_address_is_kept_leaves_it_unknown(void **state)
{
	/* 0 lea 8(%rip),%rax; 7 ret; 8 ret */
	TOY(&toy, 0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3, 0xc3);
	named(0, 9);
	make();
	assert_int_equal(why(0), PLAN_EXITS_LABEL);
	assert_int_equal(fn(0)->where, CODE_AT + 8);
	done(state);
	TOY(&toy, 0x90, 0xc3);
	named(0, 2);
	toy.reloc[0] = (struct plan_reloc){ DATA_AT, CODE_AT + 1 };
	toy.m.nr_relocs = 1;
	make();
	assert_int_equal(why(0), PLAN_EXITS_LABEL);
	done(state);
	/* its own start is no secret */
	TOY(&toy, 0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff, 0xc3);
	named(0, 8);
	make();
	assert_int_equal(why(0), PLAN_EXITS_OK);
}

static void what_does_not_come_back_is_no_exit(void **state)
{
	/* 0 je 3; 2 ret; 3 ud2; 5 nop | 6 call 0 | 11 hlt; 12 jmp 12 */
	TOY(&toy, 0x74, 1, 0xc3, 0x0f, 0x0b, 0x90, 0xe8, 0xf5, 0xff, 0xff, 0xff, 0xf4, 0xeb, 0xfe);
	named(0, 6);
	named(6, 11);
	named(11, 14);
	make();
	assert_int_equal(fn(0)->nr_exits, 1);
	expect_way(0, 0, 2, PLAN_WAY_RET);
	assert_int_equal(why(6), PLAN_EXITS_NONE);
	assert_int_equal(why(11), PLAN_EXITS_NONE);
	assert_int_equal(fn(11)->nr_ranges, 1);
}

static void a_function_that_runs_into_the_next_is_unknown(void **state)
{
	TOY(&toy, 0x90, 0x90, 0xc3);
	named(0, 2);
	named(2, 3);
	make();
	assert_int_equal(why(0), PLAN_EXITS_FALLS);
	assert_int_equal(why(2), PLAN_EXITS_OK);
	done(state);
	/* A branch at the end goes on, too. */
	TOY(&toy, 0x90, 0x74, 0xfd, 0xc3);
	named(0, 3);
	named(3, 4);
	make();
	assert_int_equal(why(0), PLAN_EXITS_FALLS);
}

static void what_can_t_be_decoded_is_unknown(void **state)
{
	TOY(&toy, 0x06, 0xc3, 0xc3);
	named(0, 2);
	named(2, 3);
	make();
	assert_int_equal(why(0), PLAN_EXITS_BROKEN);
	assert_int_equal(why(2), PLAN_EXITS_OK);
}

static void functions_that_overlap_are_unknown(void **state)
{
	TOY(&toy, 0x90, 0x90, 0xc3, 0xc3);
	named(0, 3);
	named(1, 3);
	named(3, 4);
	make();
	assert_int_equal(why(0), PLAN_EXITS_OVERLAP);
	assert_int_equal(why(1), PLAN_EXITS_OVERLAP);
	assert_int_equal(why(3), PLAN_EXITS_OK);
}

static void the_stack_must_be_as_at_the_entry(void **state)
{
	for (int tail = 0; tail < 2; tail++) {
		TOY(&toy, 0x90, 0xc3, 0xc3, 0xc3);
		if (tail)
			toy.code[1] = 0xeb; /* jmp to 3 + 0xc3: out of the text */
		named(0, tail ? 3 : 2);
		deep = 1;
		make();
		assert_int_equal(why(0), PLAN_EXITS_DEPTH);
		assert_int_equal(fn(0)->where, CODE_AT + 1);
		done(state);
	}
}

/* Counting, where there is no CFI: the bytes before a ret, and what is known of it then. */
static void without_cfi_the_depth_is_counted(void **state)
{
	static const struct {
		uint8_t n, code[12];
		enum plan_exits_why why;
	} how[] = {
		{ 1, { 0x90 }, PLAN_EXITS_OK },
		{ 2, { 0x50, 0x58 }, PLAN_EXITS_OK },                   /* push; pop */
		{ 1, { 0x50 }, PLAN_EXITS_DEPTH },                      /* push */
		{ 3, { 0x66, 0x50, 0x58 }, PLAN_EXITS_NO_CFI },         /* push %ax; pop %rax */
		{ 4, { 0x48, 0x83, 0xec, 8 }, PLAN_EXITS_DEPTH },       /* sub $8,%rsp */
		{ 5, { 0x48, 0x83, 0xec, 8, 0x58 }, PLAN_EXITS_OK },    /* sub $8; pop */
		{ 4, { 0x48, 0x83, 0xe4, 0xf0 }, PLAN_EXITS_NO_CFI },   /* and $-16,%rsp */
		{ 5, { 0x55, 0x48, 0x89, 0xe5, 0xc9 }, PLAN_EXITS_OK }, /* push %rbp; mov; leave */
		{ 9,
		  { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0, 0xc9 }, /* and, then leave */
		  PLAN_EXITS_OK },
		{ 6,
		  { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc9 },
		  PLAN_EXITS_NO_CFI },                                     /* pop %rbp; leave */
		{ 3, { 0x48, 0x89, 0xc4 }, PLAN_EXITS_NO_CFI },            /* mov %rax,%rsp */
		{ 5, { 0x48, 0x8d, 0x64, 0x24, 0xf8 }, PLAN_EXITS_DEPTH }, /* lea -8(%rsp),%rsp */
		{ 6, { 0x50, 0x48, 0x8d, 0x64, 0x24, 8 }, PLAN_EXITS_OK }, /* push; lea 8(%rsp) */
		{ 3, { 0x74, 1, 0x50 }, PLAN_EXITS_NO_CFI },               /* je over a push */
		{ 4, { 0x74, 2, 0x50, 0x58 }, PLAN_EXITS_OK },             /* je over push; pop */
		{ 2, { 0x48, 0x94 }, PLAN_EXITS_NO_CFI },                  /* xchg %rax,%rsp */
	};

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		uint8_t code[13];

		memcpy(code, how[i].code, how[i].n);
		code[how[i].n] = 0xc3;
		toy_code(&toy, code, how[i].n + 1U);
		named(0, how[i].n + 1U);
		bare_until = 0;
		make();
		if (why(0) != how[i].why)
			fail_msg("%zu: %s", i, plan_exits_reason(why(0)));
		done(state);
	}
}

static void without_cfi_a_return_address_that_is_read_is_seen(void **state)
{
	for (int8_t at = 0; at < 24; at += 8) {
		/* push %rax; mov at(%rsp),%rax; pop %rdx; ret */
		TOY(&toy, 0x50, 0x48, 0x8b, 0x44, 0x24, (uint8_t)at, 0x5a, 0xc3);
		named(0, 8);
		bare_until = 0;
		make();
		assert_int_equal(why(0), PLAN_EXITS_OK);
		assert_int_equal(fn(0)->flags, at == 8 ? PLAN_FN_TOUCHES : 0);
		done(state);
	}
}

static void far_and_interrupt_returns_are_unknown(void **state)
{
	static const uint8_t ends[] = { 0xcb, 0xcf };

	for (size_t i = 0; i < sizeof(ends); i++) {
		TOY(&toy, 0x90, ends[i]);
		named(0, 2);
		make();
		assert_int_equal(why(0), PLAN_EXITS_FAR);
		done(state);
	}
}

/* 0 je 3; 2 ret | 3 je 2 ... ; 5 ret: begins with an empty stack, jumps into the first */
static void a_nameless_piece_that_only_one_function_enters_is_a_part_of_it(void **state)
{
	TOY(&toy, 0x74, 1, 0xc3, 0x74, 0xfd, 0xc3);
	named(0, 3);
	toy_func(&toy, 3, 6, false);
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	assert_int_equal(fn(0)->nr_tails, 0);
	expect_way(0, 1, 5, PLAN_WAY_RET);
	assert_int_equal(why(3), PLAN_EXITS_SHARES);
	done(state);
	/* By its name others may call it. */
	TOY(&toy, 0x74, 1, 0xc3, 0x74, 0xfd, 0xc3);
	named(0, 3);
	named(3, 6);
	make();
	assert_int_equal(why(0), PLAN_EXITS_ENTERED);
	done(state);
	/* Its address is in the data. */
	TOY(&toy, 0x74, 1, 0xc3, 0x90, 0x90, 0xc3);
	named(0, 3);
	toy_func(&toy, 3, 6, false);
	toy.reloc[0] = (struct plan_reloc){ DATA_AT, CODE_AT + 3 };
	toy.m.nr_relocs = 1;
	make();
	assert_int_equal(fn(0)->nr_exits, 2);
	expect_way(0, 0, 0, PLAN_WAY_TAIL);
}

static void a_function_that_touches_its_return_address_is_marked(void **state)
{
	static const struct {
		uint8_t insn[5];
		bool touches;
	} how[] = {
		{ { 0x48, 0x8b, 0x04, 0x24, 0x90 }, true },  /* mov (%rsp),%rax */
		{ { 0x48, 0x8b, 0x44, 0x24, 8 }, false },    /* mov 8(%rsp),%rax */
		{ { 0x48, 0x8d, 0x04, 0x24, 0x90 }, true },  /* lea (%rsp),%rax */
		{ { 0x48, 0x8d, 0x24, 0x24, 0x90 }, false }, /* lea (%rsp),%rsp */
		{ { 0xff, 0x34, 0x24, 0x90, 0x58 }, true },  /* push (%rsp); nop; pop */
		{ { 0x48, 0x8b, 0x07, 0x90, 0x90 }, false }, /* mov (%rdi),%rax */
	};

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		TOY(&toy, 0, 0, 0, 0, 0, 0xc3);
		memcpy(toy.code, how[i].insn, 5);
		named(0, 6);
		make();
		assert_int_equal(fn(0)->flags, how[i].touches ? PLAN_FN_TOUCHES : 0);
		done(state);
	}
}

static void a_function_that_jumps_to_its_start_is_marked(void **state)
{
	TOY(&toy, 0x90, 0x74, 0xfd, 0xc3);
	named(0, 4);
	make();
	assert_int_equal(fn(0)->flags, PLAN_FN_LOOPS);
	assert_int_equal(fn(0)->nr_exits, 1);
}

static void a_function_that_begins_again_behind_a_check_is_entered_behind_that(void **state)
{
	/* 0 cmp 16(%r14),%rsp; 4 jbe 8; 6 nop; 7 ret; 8 call 16; 13 jmp 0; 15 hlt | 16 ret */
	static const uint8_t good[] = { 0x49, 0x3b, 0x66, 0x10, 0x76, 2,    0x90, 0xc3, 0xe8,
		                        3,    0,    0,    0,    0xeb, 0xf1, 0xf4, 0xc3 };
	static const struct {
		uint8_t at, byte;
	} bad[] = {
		{ 7, 0x90 },  /* falls into the second part */
		{ 5, 3 },     /* the branch leads into an instruction: all is another code */
		{ 14, 0xf3 }, /* jumps behind the cmp */
		{ 8, 0xb8 },  /* doesn't call */
		{ 4, 0xeb },  /* doesn't branch */
	};

	toy_code(&toy, good, sizeof(good));
	named(0, 16);
	named(16, 17);
	make();
	assert_int_equal(fn(0)->entry, CODE_AT + 6);
	assert_int_equal(fn(0)->flags, 0);
	assert_int_equal(fn(0)->nr_exits, 1);
	assert_int_equal(fn(16)->entry, CODE_AT + 16);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		done(state);
		toy_code(&toy, good, sizeof(good));
		toy.code[bad[i].at] = bad[i].byte;
		named(0, 16);
		named(16, 17);
		make();
		assert_int_equal(fn(0)->entry, CODE_AT);
	}
}

static void a_window_for_an_exit_begins_before_it_or_ends_in_filler(void **state)
{
	/* 0 nop5; 5 pop x4; 9 ret | 10 nop5; 15 ret; nopl (8) | 24 nop5; 29 je 31; 31 ret | 32 ret
	 */
	TOY(&toy, 0x0f, 0x1f, 0x44, 0, 0, 0x58, 0x59, 0x5a, 0x5b, 0xc3, 0x0f, 0x1f, 0x44, 0, 0,
	    0xc3, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x74, 0, 0xc3, 0xc3);
	named(0, 10);
	named(10, 16);
	named(24, 32);
	named(32, 33);
	make();
	assert_int_equal(way(0, 0)->window, CODE_AT + 5);
	assert_int_equal(way(10, 0)->window, CODE_AT + 15);
	assert_int_equal(way(24, 0)->window, 0);
	assert_int_equal(way(24, 0)->no_room, PLAN_WINDOW_SHORT);
	assert_int_equal(way(32, 0)->window, 0);
	assert_int_equal(fn(0)->nr_no_room, 0);
	assert_int_equal(fn(24)->nr_no_room, 1);
}

static void a_window_is_extended_up_to_an_exit_that_nothing_else_leads_to(void **state)
{
	for (int led = 0; led < 2; led++) {
		/* 0 nop5; 5 nop5; 10 je 13, or 0; 12 pop; 13 ret | 14 ret */
		TOY(&toy, 0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x74, 0, 0x58, 0xc3,
		    0xc3);
		named(0, 14);
		named(14, 15);
		toy.code[11] = led ? 1 : 0xf4;
		make();
		assert_int_equal(way(0, 0)->window, led ? 0 : CODE_AT + 5);
		done(state);
	}
}

static void an_exit_in_the_window_of_the_entry_shares_it(void **state)
{
	/* 0 pop x4; 4 ret | 5 test; 7 ret; nopl (8) | 16 test; 18 pop x4; 22 ret */
	TOY(&toy, 0x58, 0x59, 0x5a, 0x5b, 0xc3, 0x85, 0xc0, 0xc3, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0,
	    0x85, 0xc0, 0x58, 0x59, 0x5a, 0x5b, 0xc3);
	named(0, 5);
	named(5, 8);
	named(16, 23);
	make();
	assert_int_equal(way(0, 0)->window, CODE_AT);
	assert_int_equal(way(5, 0)->window, CODE_AT + 5);
	/* The entry's jump has all but two bytes of it; its copy can have the rest. */
	assert_int_equal(way(16, 0)->window, CODE_AT + 16);
}

/* Each of many functions has the same part, which would be looked at for each. */
static void a_module_that_makes_too_much_work_is_given_up(void **state)
{
	enum { MANY = 60, PART = 5 * MANY, SIZE = PART + 201 };
	static uint8_t code[SIZE];
	static struct plan_bounds func[MANY + 1];
	const struct plan_code text = { CODE_AT, code, SIZE };
	struct plan_exits_request req = { .module = &toy.m, .cfa = toy_cfa };

	TOY(&toy, 0);
	memset(code + PART, 0x90, 200);
	code[SIZE - 1] = 0xc3;
	for (int i = 0; i < MANY; i++) {
		int32_t rel = PART - 5 * i - 5;

		code[5 * i] = 0xe9;
		memcpy(code + 5 * i + 1, &rel, 4);
		func[i] = (struct plan_bounds){ CODE_AT + 5 * (uint64_t)i,
			                        CODE_AT + 5 * (uint64_t)i + 5, false, true };
	}
	func[MANY] = (struct plan_bounds){ CODE_AT + PART, CODE_AT + SIZE, true, false };
	toy.m.code = &text;
	toy.m.func = func;
	toy.m.nr_funcs = MANY + 1;
	toy_make(&toy);
	req.targets = toy.t;
	assert_int_equal(plan_exits_new(&x, &req), 0);
	assert_int_equal(why(0), PLAN_EXITS_ENTERED);
	assert_int_equal(why(5 * (MANY - 1)), PLAN_EXITS_EFFORT);
}

static void pads_out_of_order_are_refused(void **state)
{
	struct plan_exits_request req = { .module = &toy.m, .pad = pad, .nr_pads = 2 };

	TOY(&toy, 0xc3);
	named(0, 1);
	toy_make(&toy);
	req.targets = toy.t;
	pad[0].func = 2;
	pad[1].func = 1;
	assert_int_equal(plan_exits_new(&x, &req), -EINVAL);
	assert_null(x);
}

static void each_reason_has_words(void **state)
{
	for (int i = 0; i < PLAN_EXITS_REASONS; i++)
		for (int k = 0; k <= i; k++)
			assert_int_equal(!strcmp(plan_exits_reason((enum plan_exits_why)i),
			                         plan_exits_reason((enum plan_exits_why)k)),
			                 i == k);
}

#define T(name) cmocka_unit_test_teardown(name, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(returns_are_exits_with_what_they_pop),
		T(jumps_to_other_functions_are_exits),
		T(a_jump_by_pointer_from_an_empty_frame_is_an_exit),
		T(a_jump_to_a_computed_address_is_no_exit_even_from_an_empty_frame),
		T(a_switch_is_no_exit),
		T(a_cold_part_that_only_a_table_leads_to_belongs_to_the_body),
		T(cold_parts_belong_to_the_body),
		T(a_part_that_only_the_unwinder_enters_belongs_to_the_body),
		T(a_part_of_two_functions_leaves_both_unknown),
		T(a_shared_tail_leaves_both_unknown),
		T(code_in_no_function_may_enter_too),
		T(a_call_into_the_middle_leaves_it_unknown),
		T(a_place_whose_address_is_kept_leaves_it_unknown),
		T(what_does_not_come_back_is_no_exit),
		T(a_function_that_runs_into_the_next_is_unknown),
		T(what_can_t_be_decoded_is_unknown),
		T(functions_that_overlap_are_unknown),
		T(the_stack_must_be_as_at_the_entry),
		T(without_cfi_the_depth_is_counted),
		T(without_cfi_a_return_address_that_is_read_is_seen),
		T(far_and_interrupt_returns_are_unknown),
		T(a_nameless_piece_that_only_one_function_enters_is_a_part_of_it),
		T(a_function_that_touches_its_return_address_is_marked),
		T(a_function_that_jumps_to_its_start_is_marked),
		T(a_function_that_begins_again_behind_a_check_is_entered_behind_that),
		T(a_window_for_an_exit_begins_before_it_or_ends_in_filler),
		T(a_window_is_extended_up_to_an_exit_that_nothing_else_leads_to),
		T(an_exit_in_the_window_of_the_entry_shares_it),
		T(a_module_that_makes_too_much_work_is_given_up),
		T(pads_out_of_order_are_refused),
		T(each_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
