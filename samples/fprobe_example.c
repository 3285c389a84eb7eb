/* SPDX-License-Identifier: MIT */
/*
 * The kernel's samples/fprobe/fprobe_example.c for one's own process: the calls
 * and returns of all functions that match a pattern, by default those of libc that
 * make numbers of strings.
 *
 *	cc fprobe_example.c $(pkg-config --cflags --libs ukprobes) && ./a.out [GLOB [NOTGLOB]]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr() */
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <ukprobes/fprobe.h>

static unsigned long nhit;

static const char *name_of(unsigned long ip)
{
	Dl_info info;

	return dladdr((void *)ip, &info) && info.dli_sname ? info.dli_sname : "?";
}

static int sample_entry_handler(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
                                struct pt_regs *regs, void *data)
{
	printf("Enter <%s> ip = 0x%lx, first argument 0x%lx\n", name_of(ip), ip,
	       regs_get_kernel_argument(regs, 0));
	nhit++;
	return 0;
}

static void sample_exit_handler(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
                                struct pt_regs *regs, void *data)
{
	printf("Return from <%s> to 0x%lx, value %ld\n", name_of(ip), ret_ip,
	       (long)regs_return_value(regs));
}

static struct fprobe sample_probe = { .entry_handler = sample_entry_handler,
	                              .exit_handler = sample_exit_handler };

int main(int argc, char **argv)
{
	const char *filter = argc > 1 ? argv[1] : "libc:strto[lu]*";
	int ret = register_fprobe(&sample_probe, filter, argc > 2 ? argv[2] : NULL);

	if (ret < 0) {
		fprintf(stderr, "register_fprobe failed, returned %d: %s\n", ret,
		        ukp_kprobe_error());
		return 1;
	}
	printf("Planted fprobe at %zu functions\n", ukp_fprobe_functions(&sample_probe));
	printf("42 is %ld\n", strtol("42", NULL, 10));
	unregister_fprobe(&sample_probe);
	printf("fprobe at %s unregistered. %lu times hit, %lu times missed\n", filter, nhit,
	       sample_probe.nmissed);
	return 0;
}
