/* SPDX-License-Identifier: MIT */
/*
 * Loads and unloads plugin.so (argv[1]) a hundred times and calls what it
 * probes.  With -DREGISTERS it has the library itself, and a thread that probes
 * all the while.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 100

#ifdef REGISTERS
#include <ukprobes/kprobes.h>

static bool stop;

static int ignore(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static void *toggle(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct kprobe kp = { .symbol_name = "strtoul", .pre_handler = ignore };

		if (register_kprobe(&kp)) {
			printf("cannot probe: %s\n", ukp_kprobe_error());
			exit(1);
		}
		unregister_kprobe(&kp);
	}
	return NULL;
}
#endif

static unsigned long round_of(const char *path)
{
	void *so = dlopen(path, RTLD_NOW);
	unsigned long (*hits)(void), n;
	char *end;

	if (!so) {
		puts(dlerror());
		exit(1);
	}
	*(void **)&hits = dlsym(so, "plugin_hits");
	strtol("12", &end, 10);
	n = hits();
	dlclose(so);
	strtol("12", &end, 10);
	return n;
}

int main(int argc, char **argv)
{
	unsigned long hits = 0;
	int i;
#ifdef REGISTERS
	pthread_t thread;

	pthread_create(&thread, NULL, toggle, NULL);
#endif
	for (i = 0; i < ROUNDS; i++)
		hits += round_of(argv[1]);
#ifdef REGISTERS
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
#endif
	printf("%lu hits\n", hits);
	return 0;
}
