/* SPDX-License-Identifier: MIT */
/*
 * Functions of which each instruction is known, run by several threads and by a
 * SIGPROF handler.
 *
 *	blocks THREADS CALLS
 *
 * Waits for a line, does its calls, says how often blocks(3) was called in all,
 * and waits for the next; "fork" lets a child do as much first, whose calls don't
 * count.  Of blocks(3) the prologue and the end are executed
 * once, the loop and leaf() three times.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".text\n"
        ".p2align 4\n"
        ".globl blocks\n"
        ".type blocks, @function\n"
        "blocks: push	%rbx\n"
        "	push	%rbp\n"
        "	mov	%edi, %ebx\n"
        "	xor	%eax, %eax\n"
        "	xor	%ebp, %ebp\n"
        "	test	%ebx, %ebx\n"
        "	je	2f\n"
        "1:	lea	(%rax,%rbx), %eax\n"
        "	add	$3, %ebp\n"
        "	call	leaf\n"
        "	dec	%ebx\n" /* four bytes between a return and a target */
        "	jne	1b\n"
        "2:	add	%ebp, %eax\n"
        "	pop	%rbp\n"
        "	pop	%rbx\n"
        "	ret\n"
        ".size blocks, . - blocks\n"

        /* three bytes, and padding that nothing leads to */
        ".p2align 4\n"
        ".type leaf, @function\n"
        "leaf:	xor	%ecx, %ecx\n"
        "	ret\n"
        ".size leaf, . - leaf\n"
        ".p2align 4, 0xcc\n");

int blocks(int n);

static unsigned long nr_threads, nr_calls, called, wrong;

/* 3 + 2 + 1, and three times 3 */
static void call(void)
{
	__atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
	if (blocks(3) != 15)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void on_prof(int sig)
{
	call();
}

static void *run(void *arg)
{
	unsigned long i;

	for (i = 0; i < nr_calls; i++)
		call();
	return NULL;
}

/* A child's calls; true: one of them was wrong, or it died. */
static int child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		run(NULL);
		_exit(wrong != 0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static void *idle(void *arg)
{
	return NULL;
}

static void timer(int on)
{
	struct itimerval it = { { 0, on ? 1000 : 0 }, { 0, on ? 1000 : 0 } };

	setitimer(ITIMER_PROF, &it, NULL);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	pthread_t t[64];
	char line[64];
	unsigned long i;

	nr_threads = strtoul(argv[1], NULL, 0) % 64;
	nr_calls = strtoul(argv[2], NULL, 0);
	sigaction(SIGPROF, &sa, NULL);
	/* What libc does for the first threads is done. */
	for (i = 0; i < nr_threads; i++)
		if (pthread_create(&t[i], NULL, idle, NULL))
			abort();
	for (i = 0; i < nr_threads; i++)
		pthread_join(t[i], NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		if (!strcmp(line, "fork\n"))
			wrong += child();
		timer(1);
		for (i = 0; i < nr_threads; i++)
			if (pthread_create(&t[i], NULL, run, NULL))
				abort();
		for (i = 0; i < nr_threads; i++)
			pthread_join(t[i], NULL);
		timer(0);
		printf("called %lu\nwrong %lu\ndone\n", called, wrong);
		fflush(stdout);
	}
	return 0;
}
