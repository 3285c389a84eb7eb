/* SPDX-License-Identifier: MIT */
/*
 * Functions that return in ways that matter to whoever catches returns.  A line
 * on standard input is a command, and its answer a line "NAME VALUE":
 *
 *	all	each of them, in some threads, too; "sum" is the same each time
 *	hold	hold() waits for another line, and returns its number
 *	block	block() returns with all signals blocked, 100 times
 *	address	own() returns its return address: is it in its caller?
 *	objects	dl_iterate_phdr(), which looks at its own: for so many objects
 */
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FN __attribute__((noinline, noclone))
#define THREADS 3

static volatile long sink;
static jmp_buf back;
static sigset_t before;

FN long plain(long x)
{
	if (x % 3 == 0)
		return sink + 7;
	for (long i = 0; i < x; i++)
		sink += i & 0;
	return sink + x * 2;
}

FN long recurse(long n)
{
	long r = n ? recurse(n - 1) : 0;

	return r + n + sink;
}

/* Every other one doesn't come back. */
FN long leaves(long x)
{
	long r = plain(x);

	if (x & 1)
		longjmp(back, 1);
	return r + sink;
}

FN long jumps(long x)
{
	volatile long r = 0;

	if (!setjmp(back))
		r = leaves(x);
	return r + sink;
}

FN long handled(long x)
{
	return recurse(x) + sink;
}

static void on_signal(int sig)
{
	handled(sig);
}

FN long sleeps(long ms)
{
	usleep(ms * 1000);
	return ms + sink;
}

static long mine(void)
{
	long sum = 0;

	for (long x = 0; x < 40; x++)
		sum += plain(x) + recurse(x % 7);
	return sum;
}

static void *thread(void *arg)
{
	*(long *)arg = mine();
	return NULL;
}

static long all(void)
{
	long sum = mine(), of[THREADS];
	pthread_t t[THREADS];

	for (long x = 0; x < 20; x++)
		sum += jumps(x);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, thread, &of[i]))
			abort();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += of[i];
	}
	return sum + sleeps(3);
}

FN long hold(long x)
{
	char line[64], *end;
	long n;

	puts("holding 1");
	if (!fgets(line, sizeof(line), stdin))
		return -1;
	n = strtol(line, &end, 10);
	if (*end != '\n')
		printf("odd %s", line);
	return n + x + sink;
}

FN long block(long x)
{
	sigset_t every;

	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &before);
	return x + sink;
}

static long blocks(void)
{
	long sum = 0;

	for (long x = 0; x < 100; x++) {
		sum += block(x);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	return sum;
}

FN void *own(void)
{
	/* Room for a jump. */
	for (long i = 0; i < 3; i++)
		sink += i & 0;
	return (char *)__builtin_return_address(0) + sink;
}

FN long address(void)
{
	uintptr_t to = (uintptr_t)own() - (uintptr_t)address;

	return to < 64;
}

static int count(struct dl_phdr_info *info, size_t size, void *arg)
{
	return (int)++*(long *)arg;
}

static long objects(void)
{
	long n = 0, i;

	for (i = 0; i < 10; i++) {
		n = 0;
		dl_iterate_phdr(count, &n);
	}
	return n;
}

int main(void)
{
	char line[64];

	signal(SIGUSR1, on_signal);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "all\n"))
			printf("sum %ld\n", all());
		else if (!strcmp(line, "hold\n"))
			printf("held %ld\n", hold(1));
		else if (!strcmp(line, "block\n"))
			printf("blocked %ld\n", blocks());
		else if (!strcmp(line, "address\n"))
			printf("address %ld\n", address());
		else if (!strcmp(line, "objects\n"))
			printf("objects %ld\n", objects());
	}
	return 0;
}
