/* SPDX-License-Identifier: MIT */
/*
 * Walks its own stack by the calls of a libunwind, from a function, from a signal
 * handler and, where it is there, by unw_backtrace(); each line that comes in is a
 * round, and says where each walk has been: in the program by places, else "lib".
 * Without the headers, which can be there for one library only.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#ifdef LLVM
#define GETCONTEXT unw_getcontext
#define INIT_LOCAL unw_init_local
#define GET_REG unw_get_reg
#define STEP unw_step
#define IP (-1)
#else
#define GETCONTEXT _Ux86_64_getcontext
#define INIT_LOCAL _ULx86_64_init_local
#define GET_REG _ULx86_64_get_reg
#define STEP _ULx86_64_step
#define IP 16
extern int unw_backtrace(void **to, int n);
#endif

struct room {
	uint64_t word[512]; /* more than any of them has */
};

extern int GETCONTEXT(struct room *context);
extern int INIT_LOCAL(struct room *cursor, struct room *context);
extern int GET_REG(struct room *cursor, int reg, uint64_t *value);
extern int STEP(struct room *cursor);

extern char __executable_start[], etext[];

static void say(uint64_t ip)
{
	const uint64_t at = ip - (uint64_t)__executable_start;

	if (at < (uint64_t)(etext - __executable_start))
		printf(" %#lx", at);
	else
		printf(" lib");
}

__attribute__((noinline)) long u_walks(long n)
{
	struct room context, cursor;
	uint64_t ip;

	GETCONTEXT(&context);
	INIT_LOCAL(&cursor, &context);
	while (STEP(&cursor) > 0 && !GET_REG(&cursor, IP, &ip) && ip && n++ < 64)
		say(ip);
	return n;
}

#ifndef LLVM
__attribute__((noinline)) long u_asks(long n)
{
	void *at[64];
	int i;

	n = unw_backtrace(at, 64);
	for (i = 0; i < n; i++)
		say((uint64_t)at[i]);
	return n;
}
#endif

static void handler(int sig)
{
	u_walks(0);
}

__attribute__((noinline)) long u_raises(long n)
{
	raise(SIGUSR1);
	return n + 1;
}

static long (*leaf)(long n);

__attribute__((noinline)) long u_odd(long n);

__attribute__((noinline)) long u_even(long n)
{
	return n ? u_odd(n - 1) + 1 : leaf(0) * 1000;
}

__attribute__((noinline)) long u_odd(long n)
{
	return u_even(n - 1) + 2;
}

int main(void)
{
	static const struct {
		const char *name;
		long (*fn)(long n);
	} leaves[] = {
#ifndef LLVM
		{ "asks", u_asks },
#endif
		{ "walks", u_walks },
		{ "raises", u_raises },
	};
	char line[64];
	unsigned int i;

	signal(SIGUSR1, handler);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (i = 0; i < sizeof(leaves) / sizeof(*leaves); i++) {
			printf("%s:", leaves[i].name);
			leaf = leaves[i].fn;
			printf(" %ld\n", u_even(8));
		}
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
