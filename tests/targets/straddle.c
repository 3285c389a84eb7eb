/* SPDX-License-Identifier: MIT */
/*
 * straddle THREADS: functions whose first five bytes cross a cache line or a
 * page, as one instruction or as several, called by so many threads as fast as
 * they can, and by the handler of a SIGPROF that comes a thousand times a second.
 * Each result is checked.
 *
 * Says "ready"; "go" starts that and says "running"; "mark N" calls mark() so
 * often and says "marked"; "stop" ends the threads and says how often each
 * function was called, and how many results were wrong.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/*
 * x + 0x1001: from OFF bytes before a boundary on.  In each, an "add" behind the
 * window is where calls can be counted whatever happens to the window.
 */
__asm__(".text\n"
        ".macro single name, bound, off\n"
        ".balign 4096, 0xcc\n"
        ".skip \\bound - \\off, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".cfi_startproc\n"
        "	lea	0x1000(%rdi), %rax\n"
        "\\name\\()_add:\n"
        "	add	$1, %rax\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        ".macro several name, bound, off\n"
        ".balign 4096, 0xcc\n"
        ".skip \\bound - \\off, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".cfi_startproc\n"
        "	push	%rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset rbx, 0\n"
        "	mov	%rdi, %rbx\n"
        "	lea	0x1000(%rbx), %rax\n"
        "	add	$1, %rax\n"
        "	pop	%rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore rbx\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        "single line_one, 256, 3\n"
        "several line_many, 256, 2\n"
        "single page_one, 4096, 3\n"
        "several page_many, 4096, 2\n"
        "several mark, 4096, 3\n"
        ".balign 4096, 0xcc\n");
long line_one(long x);
long line_many(long x);
long page_one(long x);
long page_many(long x);
long mark(long x);

#define NR 4
#define TURN 500
#define REST_US 1000
static long (*const fn[NR])(long) = { line_one, line_many, page_one, page_many };
static const char *const name[NR] = { "line_one", "line_many", "page_one", "page_many" };

static unsigned long calls[NR], wrong;
static volatile int stop;

static void call(unsigned int i, long x, unsigned long *count)
{
	if (fn[i](x) != x + 0x1001)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	++*count;
}

static void *run(void *arg)
{
	unsigned long mine[NR] = { 0 };
	unsigned int i;
	long x;

	for (x = 0; !stop; x++) {
		for (i = 0; i < NR; i++)
			call(i, x, &mine[i]);
		/* They are more than there are CPUs: none waits for its turn for long. */
		if (x % TURN == 0)
			usleep(REST_US);
	}
	for (i = 0; i < NR; i++)
		__atomic_fetch_add(&calls[i], mine[i], __ATOMIC_RELAXED);
	return NULL;
}

static void on_prof(int sig)
{
	unsigned long mine = 0;
	unsigned int i;

	for (i = 0; i < NR; i++) {
		call(i, sig + i, &mine);
		__atomic_fetch_add(&calls[i], 1, __ATOMIC_RELAXED);
	}
}

static void timer(long us)
{
	struct itimerval it = { { 0, us }, { 0, us } };

	setitimer(ITIMER_PROF, &it, NULL);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	unsigned int n = strtoul(argv[1], NULL, 0), i;
	pthread_t t[64];
	char line[64];
	long k, marks;

	sigaction(SIGPROF, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "mark %ld", &marks) == 1) {
			for (k = 0; k < marks; k++)
				if (mark(k) != k + 0x1001)
					__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
			printf("marked\n");
		} else if (!strcmp(line, "go\n")) {
			for (i = 0; i < n && i < 64; i++)
				pthread_create(&t[i], NULL, run, NULL);
			timer(1000);
			printf("running\n");
		} else if (!strcmp(line, "stop\n")) {
			timer(0);
			stop = 1;
			for (i = 0; i < n; i++)
				pthread_join(t[i], NULL);
			for (i = 0; i < NR; i++)
				printf("%s %lu\n", name[i], calls[i]);
			printf("wrong %lu\ndone\n", wrong);
		}
		fflush(stdout);
	}
	return 0;
}
