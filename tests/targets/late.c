/* SPDX-License-Identifier: MIT */
/*
 * Loads and unloads libraries as it is told: "load PATH", "call N" (its work(), N
 * times), "unload"; answers "done", with what work() gave wrong.  With -DLIBRARY it
 * is such a library, whose constructor calls work() CALLS times; OTHER makes another
 * one, whose code differs.
 */
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY

#ifndef OTHER
#define OTHER 0
#endif

__attribute__((noinline)) unsigned long late_work(unsigned long n)
{
	__asm__ volatile("nopl %c0(%%rax)" : : "i"(OTHER) : "memory");
	return 3 * n + OTHER;
}

__attribute__((constructor)) static void begin(void)
{
	unsigned long i;

	for (i = 0; i < CALLS; i++)
		late_work(i);
}

#else

#include <dlfcn.h>

static unsigned long (*work)(unsigned long), wrong;
static void *so;

static void load(const char *path)
{
	so = dlopen(path, RTLD_NOW);
	if (!so) {
		puts(dlerror());
		wrong++;
		return;
	}
	*(void **)&work = dlsym(so, "late_work");
}

static void call(unsigned long n)
{
	unsigned long i, base = work(0);

	for (i = 1; i < n; i++)
		if (work(i) != base + 3 * i)
			wrong++;
}

int main(void)
{
	char line[512], path[500];
	unsigned long n;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "load %499s", path) == 1)
			load(path);
		else if (sscanf(line, "call %lu", &n) == 1)
			call(n);
		else if (dlclose(so))
			wrong++;
		if (so)
			printf("at %p\n", (void *)work);
		printf("wrong %lu\ndone\n", wrong);
		fflush(stdout);
	}
	return wrong != 0;
}

#endif
