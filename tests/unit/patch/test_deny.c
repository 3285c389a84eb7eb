/* SPDX-License-Identifier: MIT */
/*
 * Runs tests/targets/blocked.c step by step and asks of every instruction that
 * libc executes with all signals blocked whether a probe there is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <signal.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "patch/deny.h"

#define GETSIGMASK 0x420a
#define MAX_PCS 65536

static const char target[] = "build/tests/targets-deny-blocked";

struct run {
	uint64_t pc[MAX_PCS];
	size_t n;
	long steps;
	struct sym_proc *sym;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void unique(struct run *r)
{
	size_t i, n = 0;

	qsort(r->pc, r->n, sizeof(*r->pc), compare);
	for (i = 0; i < r->n; i++)
		if (!n || r->pc[i] != r->pc[n - 1])
			r->pc[n++] = r->pc[i];
	r->n = n;
}

/* A stepped thread never shows SIGTRAP blocked: another signal stands for all. */
static void note(struct run *r, pid_t tid)
{
	struct user_regs_struct regs;
	uint64_t mask = 0;

	r->steps++;
	if (ptrace(GETSIGMASK, tid, sizeof(mask), &mask) || !(mask & 1ull << (SIGUSR2 - 1)) ||
	    ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return;
	if (r->n == MAX_PCS)
		unique(r);
	if (r->n < MAX_PCS)
		r->pc[r->n++] = regs.rip;
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid) {
		int fd = open("/dev/null", O_WRONLY);

		dup2(fd, 1);
		dup2(fd, 2);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execl(target, target, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ptrace(PTRACE_SETOPTIONS, pid, 0,
	       PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
	               PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, pid, 0, 0);
	return pid;
}

static void step_all(struct run *r, pid_t leader)
{
	struct err err = ERR_INIT;
	bool running = false;
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WSTOPSIG(status), event = status >> 16;

		if (!WIFSTOPPED(status))
			continue;
		/* The programs that it runs are not of interest. */
		if (event == PTRACE_EVENT_EXEC && (running || tid != leader)) {
			ptrace(PTRACE_DETACH, tid, 0, 0);
			continue;
		}
		running = running || event == PTRACE_EVENT_EXEC;
		if (sig == SIGTRAP && !event) {
			note(r, tid);
			/* By now the libraries are in. */
			if (r->steps % 20000 == 0 && tid == leader) {
				sym_close(r->sym);
				r->sym = NULL;
				assert_int_equal(sym_open(&r->sym, leader, &err), 0);
			}
		}
		if (sig == SIGTRAP || sig == SIGSTOP || event)
			sig = 0;
		ptrace(PTRACE_SINGLESTEP, tid, 0, sig);
	}
}

static void no_probe_lands_where_libc_blocks_all_signals(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	unsigned int allowed = 0, checked = 0;
	struct sym_module *m;
	size_t i;

	assert_non_null(r);
	step_all(r, start());
	unique(r);
	assert_non_null(r->sym);
	for (i = 0; i < r->n; i++) {
		char at[256];

		m = sym_module_of(r->sym, r->pc[i]);
		if (!m || strncmp(sym_module_name(m), "libc.so", 7))
			continue;
		checked++;
		if (deny_check(r->sym, r->pc[i], false))
			continue;
		sym_format(r->sym, r->pc[i], at, sizeof(at));
		print_message("a probe would be allowed at %s\n", at);
		allowed++;
	}
	print_message("%ld steps, %u places of libc with all signals blocked\n", r->steps, checked);
	assert_true(r->steps > 50000);
	assert_true(checked > 500);
	assert_int_equal(allowed, 0);
	sym_close(r->sym);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_probe_lands_where_libc_blocks_all_signals),
	};

	if (system("mkdir -p build/tests && gcc -O1 -o build/tests/targets-deny-blocked "
	           "tests/targets/blocked.c"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
