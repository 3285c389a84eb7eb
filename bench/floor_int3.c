/* SPDX-License-Identifier: MIT */
/*
 * The least that an int3 probe pays when it leaves its handler the usual way:
 * int3, SIGTRAP to a C handler that counts and points rip at a displaced copy
 * of the instruction, rt_sigreturn by returning.  No table, no record.
 */
#include "target.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define COPY 16 /* both functions are shorter, free of rip-relative code, and end in ret */

static unsigned char *copy, *at, first;
static volatile unsigned long hits;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	hits++;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)copy;
}

static int set_byte(unsigned char *p, unsigned char byte)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)p & ~(page - 1));

	if (mprotect(start, page, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -1;
	*p = byte;
	return mprotect(start, page, PROT_READ | PROT_EXEC);
}

int floor_plant(long (*fn)(long))
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (!copy)
		copy = mmap(NULL, COPY, PROT_READ | PROT_WRITE | PROT_EXEC,
		            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED || sigaction(SIGTRAP, &sa, NULL))
		return -1;
	at = (unsigned char *)(uintptr_t)fn;
	memcpy(copy, at, COPY);
	first = *at;
	return set_byte(at, 0xcc);
}

void floor_unplant(void)
{
	signal(SIGTRAP, SIG_DFL);
	set_byte(at, first);
}

unsigned long floor_hits(void)
{
	return hits;
}
