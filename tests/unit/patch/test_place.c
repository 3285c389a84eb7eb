/* SPDX-License-Identifier: MIT */
/*
 * Where no probe can be: each refusal with its errno and its reason, by the
 * check of one place and by the survey of many; and that its neighbours can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "patch/deny.h"
#include "patch/place.h"
#include "patch/survey.h"
#include "patch/target_set.h"

static struct sym_proc *sym;

/* As it is now; what was mapped since is seen. */
static void look(void)
{
	struct err err = ERR_INIT;

	if (sym)
		sym_close(sym);
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
}

static int close_all(void **state)
{
	if (sym)
		sym_close(sym);
	return 0;
}

static const char *survey_says(uint64_t addr)
{
	struct survey *s;
	const char *why;

	assert_int_equal(survey_open(&s, sym, false), 0);
	why = survey_check(s, addr, NULL);
	survey_close(s);
	return why;
}

static void expect_refused(uint64_t addr, int code, const char *words)
{
	struct err err = ERR_INIT;
	int ret = place_check(sym, addr, false, NULL, -1, &err);

	if (ret != code || !strstr(err.text, words)) {
		print_error("%#lx: %d '%s', not %d '%s'\n", addr, ret, ret ? err.text : "", code,
		            words);
		fail();
	}
	assert_non_null(survey_says(addr));
}

static void expect_allowed(uint64_t addr)
{
	struct err err = ERR_INIT;

	if (place_check(sym, addr, false, NULL, -1, &err)) {
		print_error("%#lx: '%s'\n", addr, err.text);
		fail();
	}
	assert_null(survey_says(addr));
}

/* Instructions one by one, with labels around them. */
extern const char odd_int3[], odd_ss[], odd_far[], odd_16[], odd_xbegin[], odd_fine[], odd_int[],
	odd_end[];
__asm__(".text\n"
        ".type odd, @function\n"
        "odd:\n"
        "odd_fine:   mov %rsp, %rbp\n"
        "odd_int3:   int3\n"
        "odd_int:    int $0x80\n"
        "odd_ss:     mov %eax, %ss\n"
        "odd_far:    lretq\n"
        "odd_16:     data16 jmp *%rax\n"
        "odd_xbegin: xbegin 1f\n"
        "1:\n"
        "odd_end:    ret\n"
        ".size odd, . - odd\n");

static void each_instruction_that_has_no_copy_has_a_reason(void **state)
{
	look();
	expect_allowed((uint64_t)odd_fine);
	expect_refused((uint64_t)odd_fine + 1, -EILSEQ, "not an instruction boundary");
	expect_refused((uint64_t)odd_int3, -EILSEQ, "a breakpoint or software interrupt already");
	expect_refused((uint64_t)odd_int, -EILSEQ, "a breakpoint or software interrupt already");
	expect_refused((uint64_t)odd_ss, -EINVAL, "stack segment");
	expect_refused((uint64_t)odd_far, -EOPNOTSUPP, "far branch");
	expect_refused((uint64_t)odd_16, -EOPNOTSUPP, "prefix that CPUs read differently");
	expect_refused((uint64_t)odd_xbegin, -EOPNOTSUPP, "transaction");
	expect_allowed((uint64_t)odd_end);
}

static void what_is_no_code_of_a_file_is_refused(void **state)
{
	static int data;
	void *anon = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct sym_map *m;
	bool vdso = false;

	look();
	expect_refused((uint64_t)&data, -EINVAL, "not executable memory");
	expect_refused(0x1000, -EINVAL, "not executable memory");
	expect_refused((uint64_t)anon, -EINVAL, "anonymous memory");
	for (size_t i = 0; i < sym_nr_maps(sym); i++) {
		m = sym_map_at(sym, i);
		if (!strcmp(m->path, "[vsyscall]"))
			expect_refused(m->start, -EINVAL, m->x ? "[vsyscall]" : "not executable");
		vdso |= !strcmp(m->path, "[vdso]");
	}
	if (!sym_map_find(sym, 0xffffffffff600000))
		print_message("skip: this kernel has no vsyscall page\n");
	assert_true(vdso);
	munmap(anon, 4096);
}

static int read_self(void *arg, uint64_t addr, void *buf, size_t len)
{
	int fd = open("/proc/self/mem", O_RDONLY);
	ssize_t n = pread(fd, buf, len, (off_t)addr);

	close(fd);
	return n == (ssize_t)len ? 0 : -EIO;
}

static const struct place_live own = { read_self, NULL };

static void expect_live(const void *at, int code, const char *words)
{
	struct err err = ERR_INIT;
	int ret = place_check_live(sym, &own, (uint64_t)at, -1, &err);

	if (ret != code || !strstr(err.text, words)) {
		print_error("%p: %d '%s', not %d '%s'\n", at, ret, err.text, code, words);
		fail();
	}
}

static void what_no_file_has_can_be_asked_for(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xcc, 0xb8, 0x0f,
		                        0,    0,    0,    0x0f, 0x05, 0x06, 0xc3 };
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *anon = mmap(NULL, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *shared = mmap(NULL, 4096, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct plan_request req = { .addr = (uint64_t)anon, .slot = (uint64_t)anon + 8192 };
	uint8_t out[UKP_SLOT_SIZE];
	struct ukp_site site = { 0 };

	memcpy(anon, code, sizeof(code));
	memcpy(anon + 4096 - 4, code, 4);
	memcpy(shared, code, sizeof(code));
	mprotect(anon + 4096, 4096, PROT_NONE);
	mprotect(unreadable, 4096, PROT_EXEC);
	look();
	expect_live(anon, 0, "");
	expect_live(anon + 1, 0, "");
	/* Up to the end of what is there. */
	expect_live(anon + 4096 - 4, 0, "");
	expect_live(anon + 4096 - 3, 0, "");
	expect_live(anon + 4, -EILSEQ, "a breakpoint or software interrupt already");
	expect_live(anon + 5, -EINVAL, "signal handlers return through");
	expect_live(anon + 12, -EILSEQ, "");
	expect_live(shared, -EINVAL, "mapped shared");
	expect_live(&site, -EINVAL, "not in executable memory");
	expect_live(unreadable, -EINVAL, "cannot be read");
	assert_true(place_is_live(sym, &own, (uint64_t)anon));
	assert_false(place_is_live(sym, &own, (uint64_t)shared));
	assert_false(place_is_live(sym, &own, (uint64_t)odd_fine));
	/* What follows it is kept, as far as it can be read. */
	assert_int_equal(place_copy_live(&own, &req, out, &site), PLAN_OK);
	assert_memory_equal(site.orig, code, sizeof(code));
	assert_int_equal(site.len, 1);
	munmap(anon, 8192);
	munmap(shared, 4096);
	munmap(unreadable, 4096);
}

/* The file's rules hold where there is a file. */
static void changed_text_of_a_file_can_be_asked_for(void **state)
{
	uint8_t *page = (uint8_t *)((uint64_t)odd_fine & ~4095ull);
	const size_t len = (size_t)(odd_end + 1 - odd_fine);
	uint8_t was[64];

	memcpy(was, odd_fine, len);
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memset((uint8_t *)odd_fine, 0x90, 3);
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
	look();
	assert_true(place_is_live(sym, &own, (uint64_t)odd_fine));
	expect_live(odd_fine + 1, 0, "");
	expect_live(odd_ss + 1, -EILSEQ, "not an instruction boundary");
	mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy((uint8_t *)odd_fine, was, len);
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
	assert_false(place_is_live(sym, &own, (uint64_t)odd_fine));
}

/* A library once more, with other rights. */
static uint64_t map_again(const struct sym_map *like, int prot, int flags)
{
	int fd = open(like->path, O_RDONLY);
	void *p = mmap(NULL, like->end - like->start, prot, flags, fd, (off_t)like->offset);

	assert_true(p != MAP_FAILED);
	close(fd);
	return (uint64_t)p;
}

static void writable_and_shared_code_is_refused(void **state)
{
	struct sym_module *mod;
	const struct sym_map *m = NULL;
	uint64_t at;
	size_t len;

	look();
	mod = sym_module_find(sym, "libZydis");
	assert_non_null(mod);
	for (size_t i = 0; i < sym_nr_maps(sym) && !m; i++)
		if (sym_map_at(sym, i)->module == mod && sym_map_at(sym, i)->x)
			m = sym_map_at(sym, i);
	assert_non_null(m);
	len = m->end - m->start;
	at = map_again(m, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	look();
	expect_refused(at, -EINVAL, "writable code");
	munmap((void *)at, len);
	look();
	mod = sym_module_find(sym, "libZydis");
	for (size_t i = 0; i < sym_nr_maps(sym); i++)
		if (sym_map_at(sym, i)->module == mod && sym_map_at(sym, i)->x)
			m = sym_map_at(sym, i);
	at = map_again(m, PROT_READ | PROT_EXEC, MAP_SHARED);
	look();
	expect_refused(at, -EINVAL, "mapped shared");
	munmap((void *)at, len);
}

/* What libc gives the kernel for handlers to return through. */
static uint64_t restorer(void)
{
	struct {
		uint64_t handler, flags, restorer, mask;
	} kernel = { 0 };

	signal(SIGUSR1, _exit);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &kernel, 8), 0);
	signal(SIGUSR1, SIG_DFL);
	return kernel.restorer;
}

/* As static programs and Go have them: nothing but bytes says what they are. */
extern const char return_rax[], return_eax[], return_other[];
__asm__(".text\n"
        ".type returns, @function\n"
        "returns:      nop\n"
        "return_rax:   mov $15, %rax\n"
        "              syscall\n"
        "              int3\n"
        "return_eax:   mov $15, %eax\n"
        "              syscall\n"
        "return_other: mov $16, %eax\n"
        "              syscall\n"
        "              ret\n"
        ".size returns, . - returns\n");

static void what_handlers_return_through_is_refused(void **state)
{
	const char *why = "signal handlers return through";
	uint64_t at = restorer();
	struct err err = ERR_INIT;

	look();
	expect_refused((uint64_t)return_rax, -EINVAL, why);
	expect_refused((uint64_t)return_rax + 7, -EINVAL, why);
	expect_refused((uint64_t)return_eax, -EINVAL, why);
	expect_refused((uint64_t)return_eax + 5, -EINVAL, why);
	expect_allowed((uint64_t)return_rax - 1);
	expect_allowed((uint64_t)return_other);
	expect_allowed((uint64_t)return_other + 5);
	/* libc's own, nameless or not */
	assert_int_equal(place_check(sym, at, false, NULL, -1, &err), -EINVAL);
	assert_int_equal(plan_sigreturn((const uint8_t *)at, PLAN_SIGRETURN_MAX), 7);
}

/* Two restartable sequences as librseq and tcmalloc write them. */
extern const char rseq_before[], rseq_start[], rseq_commit[], rseq_signature[], rseq_abort[],
	rseq2_start[], rseq2_commit[];
__asm__(".pushsection __rseq_cs, \"aw\"\n"
        ".balign 32\n"
        "9:	.long 0, 0\n"
        "	.quad rseq_start, rseq_commit - rseq_start, rseq_abort\n"
        "	.long 0, 0\n"
        "	.quad rseq2_start, rseq2_commit - rseq2_start, rseq_abort\n"
        ".popsection\n"
        ".text\n"
        ".type sequence, @function\n"
        "sequence:\n"
        "rseq_before:    lea 9b(%rip), %rax\n"
        "rseq_start:     mov %rax, %rdx\n"
        "                cmp %rdx, %rcx\n"
        "                mov %rdi, (%rsi)\n"
        "rseq_commit:    ret\n"
        "                nop\n"
        "rseq_signature: .byte 0x0f, 0xb9, 0x3d\n"
        "                .long 0x53053053\n"
        "rseq_abort:     xor %eax, %eax\n"
        "                ret\n"
        "rseq2_start:    mov %rcx, (%rdx)\n"
        "rseq2_commit:   ret\n"
        ".size sequence, . - sequence\n");

static void restartable_sequences_are_refused(void **state)
{
	const char *why = "restartable sequence";
	const struct sym_rseq *cs;

	look();
	assert_int_equal(sym_rseqs(sym_module_of(sym, (uint64_t)rseq_start), &cs), 2);
	assert_int_equal(cs[0].start, (uint64_t)rseq_start);
	assert_int_equal(cs[0].end, (uint64_t)rseq_commit);
	assert_int_equal(cs[0].abort, (uint64_t)rseq_abort);
	expect_allowed((uint64_t)rseq_before);
	expect_refused((uint64_t)rseq_start, -EINVAL, why);
	expect_refused((uint64_t)rseq_start + 3, -EINVAL, why);
	expect_refused((uint64_t)rseq_start + 6, -EINVAL, why);
	expect_allowed((uint64_t)rseq_commit);
	expect_refused((uint64_t)rseq_signature, -EINVAL, why);
	expect_allowed((uint64_t)rseq_abort);
	expect_refused((uint64_t)rseq2_start, -EINVAL, why);
	expect_allowed((uint64_t)rseq2_commit);
}

/* Nor does a jump that begins before one reach into it: its ends are targets. */
static void no_window_reaches_into_a_restartable_sequence(void **state)
{
	struct err err = ERR_INIT;
	struct plan_targets *t;
	struct sym_facts *facts;
	struct sym_module *m;
	uint64_t bias;

	look();
	m = sym_module_of(sym, (uint64_t)rseq_start);
	bias = sym_module_bias(m);
	assert_int_equal(sym_facts_open(m, &facts, &err), 0);
	t = target_set_make(facts);
	assert_non_null(t);
	assert_true(
		plan_targets_any(t, (uint64_t)rseq_start - bias, (uint64_t)rseq_start - bias + 1));
	assert_true(
		plan_targets_any(t, (uint64_t)rseq_abort - bias, (uint64_t)rseq_abort - bias + 1));
	assert_true(plan_targets_any(t, (uint64_t)rseq2_start - bias,
	                             (uint64_t)rseq2_start - bias + 1));
	plan_targets_free(t);
}

static void the_lengths_are_those_of_the_files_instructions(void **state)
{
	uint8_t code[UKP_INSN_MAX];
	size_t len;

	look();
	assert_int_equal(place_length(sym, (uint64_t)odd_fine, code), 3);
	assert_memory_equal(code, odd_fine, 3);
	assert_int_equal(place_length(sym, (uint64_t)odd_int3, code), 0);
	assert_int_equal(place_original(sym, (uint64_t)odd_fine, code, &len), 0);
	assert_int_equal(len, UKP_INSN_MAX);
	assert_int_equal(place_original(sym, 0x1000, code, &len), -EIO);
	assert_int_equal(place_length(sym, 0x1000, code), 0);
}

static void an_error_names_its_column(void **state)
{
	struct err err = ERR_INIT;

	look();
	assert_int_equal(place_check(sym, 0x1000, false, NULL, 7, &err), -EINVAL);
	assert_int_equal(err.column, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_that_has_no_copy_has_a_reason),
		cmocka_unit_test(what_is_no_code_of_a_file_is_refused),
		cmocka_unit_test(what_no_file_has_can_be_asked_for),
		cmocka_unit_test(changed_text_of_a_file_can_be_asked_for),
		cmocka_unit_test(writable_and_shared_code_is_refused),
		cmocka_unit_test(what_handlers_return_through_is_refused),
		cmocka_unit_test(restartable_sequences_are_refused),
		cmocka_unit_test(no_window_reaches_into_a_restartable_sequence),
		cmocka_unit_test(the_lengths_are_those_of_the_files_instructions),
		cmocka_unit_test(an_error_names_its_column),
	};

	return cmocka_run_group_tests(tests, NULL, close_all);
}
