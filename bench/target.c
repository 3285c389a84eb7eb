/* SPDX-License-Identifier: MIT */
/*
 * A process to be measured in: it runs calls on command and says how much
 * thread CPU time each took.  Knows nothing of whoever probes it.
 */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* In assembly: what stands at the entry decides what a probe there costs. */
__asm__(".text\n"
        ".macro function name\n"
        ".balign 64\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        "function work_mov\n"
        "	mov	%rdi, %rax\n"
        "	add	$1, %rax\n"
        "	ret\n"
        ".size work_mov, . - work_mov\n"
        "function work_push\n"
        "	push	%rbp\n"
        "	mov	%rsp, %rbp\n"
        "	lea	1(%rdi), %rax\n"
        "	pop	%rbp\n"
        "	ret\n"
        ".size work_push, . - work_push\n"
        ".balign 64\n");

static long system_call(long x)
{
	(void)x;
	return syscall(SYS_getppid);
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double measure(long (*volatile fn)(long), long n)
{
	double from;
	long i;

	fn(0); /* what the first call alone pays: faults, caches */
	from = now_ns();
	for (i = 0; i < n; i++)
		fn(i);
	return (now_ns() - from) / (double)n;
}

static long (*function(const char *name))(long)
{
	if (!strcmp(name, "getppid"))
		return system_call;
	return strcmp(name, "push") ? work_mov : work_push;
}

int main(void)
{
	char line[128], name[32], what[32];
	long n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "int3 %31s %31s", name, what) == 2) {
			if (strcmp(what, "on"))
				floor_unplant();
			else if (floor_plant(function(name)))
				return 1;
			printf("%lu\n", floor_hits());
		} else if (sscanf(line, "%31s %ld", name, &n) == 2 && n > 0) {
			printf("%.3f\n", measure(function(name), n));
		}
		fflush(stdout);
	}
	return 0;
}
