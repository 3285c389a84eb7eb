/* SPDX-License-Identifier: MIT */
/* A shared object that probes from its constructor to its destructor. */
#include <stdio.h>
#include <stdlib.h>

#include <ukprobes/kprobes.h>

static unsigned long hits;

static int count(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kprobe kp = { .symbol_name = "strtol", .pre_handler = count };

static void __attribute__((constructor)) load(void)
{
	int ret = register_kprobe(&kp);

	if (ret) {
		printf("cannot probe: %d: %s\n", ret, ukp_kprobe_error());
		exit(1);
	}
}

static void __attribute__((destructor)) unload(void)
{
	unregister_kprobe(&kp);
}

unsigned long plugin_hits(void)
{
	return hits;
}
