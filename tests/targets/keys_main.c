/* SPDX-License-Identifier: MIT */
/*
 * keys_main PATH-OF-keys_b.so: what each object sees of a key before and after
 * changes, and what one sees that is loaded in between.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <ukprobes/kprobes.h>

#include "keys.h"

static bool stop;
static pthread_barrier_t running; /* libc starts threads with all signals blocked */

static int keys_main(void)
{
	return (static_branch_unlikely(&shared_key) ? 1 : 0) |
	       (static_branch_likely(&shared_on) ? 2 : 0);
}

static void expect(const char *what, int got, int want)
{
	if (got == want)
		return;
	printf("%s: %d, expected %d (%s)\n", what, got, want, ukp_kprobe_error());
	exit(1);
}

static void *load(const char *path, int (**keys_b)(void))
{
	void *lib = dlopen(path, RTLD_NOW);

	if (!lib) {
		puts(dlerror());
		exit(1);
	}
	*keys_b = (int (*)(void))dlsym(lib, "keys_b");
	return lib;
}

static void change(bool on)
{
	int ret = on ? static_branch_enable(&shared_key) : static_branch_disable(&shared_key);

	expect("change", ret, 0);
	ret = on ? static_branch_disable(&shared_on) : static_branch_enable(&shared_on);
	expect("change of the other", ret, 0);
}

static void *run(void *arg)
{
	pthread_barrier_wait(&running);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if ((keys_a() | keys_main()) > 3)
			abort();
	return NULL;
}

/* with: other threads run through the tests meanwhile. */
static void rounds(const char *path, int n, bool with)
{
	int (*keys_b)(void), (*again)(void), i;
	pthread_t t[3];

	pthread_barrier_init(&running, NULL, 4);
	for (i = 0; with && i < 3; i++)
		pthread_create(&t[i], NULL, run, NULL);
	if (with)
		pthread_barrier_wait(&running);
	for (i = 0; i < n; i++) {
		void *lib = load(path, &keys_b);

		expect("a, off", keys_a(), 2);
		expect("main, off", keys_main(), 2);
		expect("b, off", keys_b(), 2);
		change(true);
		expect("a, on", keys_a(), 1);
		expect("main, on", keys_main(), 1);
		expect("b, on", keys_b(), 1 | 4);
		dlclose(lib);
		/* It comes with tests as they were compiled. */
		lib = load(path, &again);
		expect("b, loaded while on", again(), 1 | 4 | 8);
		change(false);
		expect("b, off again", again(), 2 | 8);
		dlclose(lib);
		/* Changes while it is not there. */
		change(true);
		change(false);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; with && i < 3; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	rounds(argv[1], 20, false);
	rounds(argv[1], 50, true);
	puts("all as expected");
	return 0;
}
