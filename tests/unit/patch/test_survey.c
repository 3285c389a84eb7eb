/* SPDX-License-Identifier: MIT */
/* A survey of many places says of each what the check of a single one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "patch/place.h"
#include "patch/survey.h"

struct walk {
	struct sym_proc *sym;
	struct survey *survey;
	bool ret;
	unsigned int nr, refused, by_jump, wrong;
};

static void compare_for(struct walk *w, uint64_t addr, const char *name, bool jumps)
{
	const char *by_jump = NULL, *alone = NULL;
	const char *why = survey_check(w->survey, addr, jumps ? &by_jump : NULL);
	struct err err = ERR_INIT;
	int ret = place_check(w->sym, addr, w->ret, jumps ? &alone : NULL, -1, &err);

	w->refused += why != NULL;
	w->by_jump += !why && by_jump;
	/* The words of a survey are a part of the sentence, where that has no place in it. */
	if (!why == !ret && (ret || !by_jump == !alone))
		return;
	w->wrong++;
	print_error("%s %#lx: survey '%s', place '%s'\n", name, addr, why ? why : "",
	            ret ? err.text : "");
}

static void compare(struct walk *w, uint64_t addr, const char *name)
{
	w->nr++;
	compare_for(w, addr, name, false);
	compare_for(w, addr, name, true);
}

static int on_func(const struct sym_symbol *s, void *arg)
{
	struct walk *w = arg;

	compare(w, s->addr, s->name);
	/* Inside, on boundaries and not; one of several, for a single check is slow. */
	if (w->nr % 4 == 0 && s->size > 1) {
		compare(w, s->addr + s->size / 2, s->name);
		compare(w, s->addr + 1, s->name);
	}
	return 0;
}

static void walk(struct sym_module *m, struct sym_proc *sym, bool ret, struct walk *w)
{
	*w = (struct walk){ .sym = sym, .ret = ret };
	assert_int_equal(survey_open(&w->survey, sym, ret), 0);
	assert_int_equal(sym_for_each_func(sym, m, "*a*", on_func, w), 0);
	survey_close(w->survey);
	print_message("%s: %u places, %u refused\n", sym_module_name(m), w->nr, w->refused);
	assert_true(w->nr > 10);
	assert_int_equal(w->wrong, 0);
}

static void a_survey_agrees_with_the_check_of_each_place(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *sym;
	struct sym_module *m;
	struct walk w;

	(void)state;
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
	m = sym_module_find(sym, "libZydis");
	assert_non_null(m);
	walk(m, sym, false, &w);
	m = sym_module_find(sym, "libc");
	assert_non_null(m);
	walk(m, sym, true, &w);
	assert_true(w.refused > 0);
	/* Returns of what only a jump may probe are not followed. */
	assert_int_equal(w.by_jump, 0);
	walk(m, sym, false, &w);
	assert_true(w.by_jump > 0);
	sym_close(sym);
}

static int count(uint64_t addr, const char *why, const char *jump_only, void *arg)
{
	struct walk *w = arg;

	w->nr++;
	w->refused += why != NULL;
	assert_null(jump_only);
	assert_int_equal(place_check(w->sym, addr, false, NULL, -1, &(struct err)ERR_INIT) != 0,
	                 why != NULL);
	return 0;
}

__asm__(".text\n"
        ".type surveyed, @function\n"
        "surveyed: push	%rbp\n"
        "	mov	%rsp, %rbp\n"
        "	int3\n"
        "	movabs	$0x1122334455667788, %rax\n"
        "	pop	%rbp\n"
        "	ret\n"
        ".size surveyed, . - surveyed\n");

static void each_instruction_of_a_function_is_handed_out_once(void **state)
{
	struct err err = ERR_INIT;
	struct sym_symbol s;
	struct walk w = { .nr = 0 };

	(void)state;
	assert_int_equal(sym_open(&w.sym, getpid(), &err), 0);
	assert_int_equal(sym_lookup(w.sym, NULL, "surveyed", &s, 1), 1);
	assert_int_equal(survey_open(&w.survey, w.sym, false), 0);
	assert_int_equal(survey_insns(w.survey, s.addr, s.addr + s.size, count, &w), 0);
	assert_int_equal(w.nr, 6);
	assert_int_equal(w.refused, 1);
	survey_close(w.survey);
	sym_close(w.sym);
}

static void code_is_that_of_the_file(void **state)
{
	struct err err = ERR_INIT;
	struct survey *survey;
	struct sym_proc *sym;
	struct sym_symbol s;
	const uint8_t *code;
	size_t avail;

	(void)state;
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
	assert_int_equal(sym_lookup(sym, NULL, "surveyed", &s, 1), 1);
	assert_int_equal(survey_open(&survey, sym, false), 0);
	code = survey_code(survey, s.addr, &avail);
	assert_int_equal(avail, UKP_INSN_MAX);
	assert_memory_equal(code, (void *)s.addr, avail);
	survey_code(survey, (uint64_t)&avail, &avail);
	assert_int_equal(avail, 0);
	survey_close(survey);
	sym_close(sym);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_survey_agrees_with_the_check_of_each_place),
		cmocka_unit_test(each_instruction_of_a_function_is_handed_out_once),
		cmocka_unit_test(code_is_that_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
