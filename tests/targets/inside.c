/* SPDX-License-Identifier: MIT */
/*
 * Two threads that stand inside the first five bytes of a function, where a jump
 * is to come: one in a system call there, which it will execute anew, one in the
 * handler of a fault there, which will return to it.  "wake" and "repair" let them
 * go on, and later call the functions again; they say "woke N", "repaired N".
 * "fault" has the second one fault again, and wait for its repair.
 * "other" calls a function that nobody is in.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

long waits(long fd, char *buf, long n);
long faulty(const char *p);
void other(void);

__asm__(".text\n"
        ".globl waits, faulty, other\n"
        ".type waits, @function\n"
        "waits:	xor %eax, %eax\n" /* read */
        "	nop\n"
        "	syscall\n" /* the last of the five bytes */
        "	ret\n"
        ".size waits, . - waits\n"
        ".type faulty, @function\n"
        "faulty:	nop\n"
        "	movzbl (%rdi), %eax\n" /* inside */
        "	nop\n"
        "	ret\n"
        ".size faulty, . - faulty\n"
        ".type other, @function\n"
        "other:	xor %eax, %eax\n"
        "	xor %ecx, %ecx\n"
        "	xor %edx, %edx\n"
        "	ret\n"
        ".size other, . - other\n");

static int wake[2], repair[2];
static const char good[] = "g";
static pid_t waiter;

static void *wait_in_a_call(void *arg)
{
	char byte;

	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (int n = 1;; n++) {
		if (waits(wake[0], &byte, 1) != 1 || byte != 'w')
			abort();
		printf("woke %d\n", n);
	}
	return NULL;
}

static void on_segv(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *uc = ctx;
	char byte;

	puts("faulted"); /* not in libc: nothing is locked */
	if (read(repair[0], &byte, 1) != 1)
		abort();
	uc->uc_mcontext.gregs[REG_RDI] = (intptr_t)good;
}

static void *wait_in_a_handler(void *arg)
{
	const char *p = NULL;
	char byte;

	for (int n = 1;; n++) {
		if (faulty(p) != 'g')
			abort();
		printf("repaired %d\n", n);
		if (read(repair[0], &byte, 1) != 1)
			abort();
		p = byte == 'f' ? NULL : good;
	}
	return NULL;
}

/* Until that thread is in its read(). */
static void await_waiter(void)
{
	char path[64], line[64] = "";
	pid_t tid;
	FILE *f;

	while (strncmp(line, "0 ", 2)) {
		usleep(1000);
		tid = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE);
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
		f = tid ? fopen(path, "r") : NULL;
		if (f && !fgets(line, sizeof(line), f))
			line[0] = 0;
		if (f)
			fclose(f);
	}
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	pthread_t a, b;
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGSEGV, &sa, NULL);
	if (pipe(wake) || pipe(repair) || pthread_create(&a, NULL, wait_in_a_call, NULL) ||
	    pthread_create(&b, NULL, wait_in_a_handler, NULL))
		return 1;
	await_waiter();
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "wake\n") && write(wake[1], "w", 1) != 1)
			return 1;
		if (!strcmp(line, "repair\n") && write(repair[1], "r", 1) != 1)
			return 1;
		if (!strcmp(line, "fault\n") && write(repair[1], "f", 1) != 1)
			return 1;
		if (!strcmp(line, "other\n")) {
			other();
			puts("called");
		}
	}
	return 0;
}
