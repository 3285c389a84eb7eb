/* SPDX-License-Identifier: MIT */
/*
 * Runs tests/targets/blocked.c step by step and asks of every instruction that
 * libc executes with all signals blocked, or in a child that has taken handlers
 * away and still shares the memory, whether a probe there is refused.
 */
#include <sched.h>
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
#include "patch/place.h"

#define GETSIGMASK 0x420a
#define MAX_PCS 65536
#define MAX_SPAWNED 64

static const char shared[] = "build/tests/targets-deny-blocked";
static const char musl[] = "build/tests/targets-deny-blocked-musl";

struct run {
	uint64_t pc[MAX_PCS];
	size_t n;
	long steps, spawned_steps;
	pid_t spawned[MAX_SPAWNED]; /* children that share memory until they exec */
	unsigned int nr_spawned;
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

static bool is_spawned(const struct run *r, pid_t tid)
{
	for (unsigned int i = 0; i < r->nr_spawned; i++)
		if (r->spawned[i] == tid)
			return true;
	return false;
}

/* A stepped thread never shows SIGTRAP blocked: another signal stands for all. */
static void note(struct run *r, pid_t tid)
{
	struct user_regs_struct regs;
	uint64_t mask = 0;

	r->steps++;
	r->spawned_steps += is_spawned(r, tid);
	if (!is_spawned(r, tid) &&
	    (ptrace(GETSIGMASK, tid, sizeof(mask), &mask) || !(mask & 1ull << (SIGUSR2 - 1))))
		return;
	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return;
	if (r->n == MAX_PCS)
		unique(r);
	if (r->n < MAX_PCS)
		r->pc[r->n++] = regs.rip;
}

static pid_t start(const char *target)
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
		if (event == PTRACE_EVENT_VFORK) {
			unsigned long child;

			ptrace(PTRACE_GETEVENTMSG, tid, 0, &child);
			assert_true(r->nr_spawned < MAX_SPAWNED);
			r->spawned[r->nr_spawned++] = (pid_t)child;
		}
		if (sig == SIGTRAP && !event) {
			note(r, tid);
			/* By now the libraries are in, if there are any. */
			if (tid == leader && (r->steps % 20000 == 0 || r->steps == 300)) {
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

/* Of libc's modules, or of the program that has it in itself? */
static bool is_libc(const struct sym_module *m, bool in_program)
{
	if (!m || in_program)
		return m && sym_module_is_exe(m);
	return !strncmp(sym_module_name(m), "libc.so", 7) ||
	       !strncmp(sym_module_name(m), "ld-linux", 8);
}

static bool is_refused(struct sym_proc *sym, uint64_t pc)
{
	struct err err = ERR_INIT;
	struct sym_symbol s;
	uint64_t off;

	/* The child of a vfork() of the program's own has all handlers still. */
	if (sym_resolve(sym, pc, &s, &off) && strstr(s.name, "vfork"))
		return true;
	return deny_check(sym, pc, false, NULL) || place_check(sym, pc, false, NULL, -1, &err);
}

/* The program's own functions in a static one: main() and what blocked.c calls from it. */
static bool is_own(struct sym_proc *sym, uint64_t pc)
{
	static const char *const own[] = { "main", "forks_and_signals" };
	struct sym_symbol s;
	uint64_t off;

	for (size_t i = 0; sym_resolve(sym, pc, &s, &off) && i < 2; i++)
		if (!strcmp(s.name, own[i]))
			return true;
	return false;
}

/* It unmaps the stack that a probe would use: not even a jump stands there. */
static void expect_nothing_without_a_stack(struct sym_proc *sym)
{
	const char *jump_only;
	struct sym_symbol s;

	assert_int_equal(sym_lookup(sym, NULL, "__unmapself", &s, 1), 1);
	assert_null(deny_check(sym, s.addr, false, &jump_only));
	assert_non_null(jump_only);
	assert_non_null(deny_check(sym, s.addr + 5, false, &jump_only));
	assert_null(jump_only);
}

static void expect_all_refused(const char *target, bool in_program)
{
	struct run *r = calloc(1, sizeof(*r));
	unsigned int allowed = 0, checked = 0;
	size_t i;

	assert_non_null(r);
	step_all(r, start(target));
	unique(r);
	assert_non_null(r->sym);
	for (i = 0; i < r->n; i++) {
		char at[256];

		if (!is_libc(sym_module_of(r->sym, r->pc[i]), in_program) ||
		    is_own(r->sym, r->pc[i]))
			continue;
		checked++;
		if (is_refused(r->sym, r->pc[i]))
			continue;
		sym_format(r->sym, r->pc[i], at, sizeof(at));
		print_message("a probe would be allowed at %s\n", at);
		allowed++;
	}
	print_message("%ld steps, %ld of them in %u spawned children; %u places of libc\n",
	              r->steps, r->spawned_steps, r->nr_spawned, checked);
	assert_true(r->nr_spawned >= 7 && r->spawned_steps > 3000);
	assert_true(r->steps > 20000);
	assert_true(checked > 500);
	assert_int_equal(allowed, 0);
	if (in_program)
		expect_nothing_without_a_stack(r->sym);
	sym_close(r->sym);
	free(r);
}

static void no_probe_lands_where_libc_blocks_all_signals(void **state)
{
	(void)state;
	expect_all_refused(shared, false);
}

static void nor_where_a_static_musl_does(void **state)
{
	(void)state;
	if (system("musl-gcc -static -O1 -w -o build/tests/targets-deny-blocked-musl "
	           "tests/targets/blocked.c 2>/dev/null")) {
		print_message("skip: there is no musl-gcc that builds static programs\n");
		skip();
	}
	expect_all_refused(musl, true);
}

/* A step is two switches between us and the target; on two CPUs each takes an interrupt. */
static void stay_on_one_cpu(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_probe_lands_where_libc_blocks_all_signals),
		cmocka_unit_test(nor_where_a_static_musl_does),
	};

	if (system("mkdir -p build/tests && gcc -O1 -o build/tests/targets-deny-blocked "
	           "tests/targets/blocked.c"))
		return 1;
	stay_on_one_cpu();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
