/* SPDX-License-Identifier: MIT */
/*
 * The kernel's samples/kprobes/kprobe_example.c for one's own process: a probe
 * at a function of libc, by default setenv().
 *
 *	cc kprobe_example.c $(pkg-config --cflags --libs ukprobes) && ./a.out [SYMBOL]
 */
#include <stdio.h>
#include <stdlib.h>

#include <ukprobes/kprobes.h>

static struct kprobe kp = { .symbol_name = "setenv" };

static int handler_pre(struct kprobe *p, struct pt_regs *regs)
{
	printf("<%s> p->addr = %p, ip = %lx, flags = 0x%lx\n", p->symbol_name, (void *)p->addr,
	       instruction_pointer(regs), regs->flags);
	return 0;
}

static void handler_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	printf("<%s> p->addr = %p, flags = 0x%lx\n", p->symbol_name, (void *)p->addr, regs->flags);
}

int main(int argc, char **argv)
{
	int ret;

	if (argc > 1)
		kp.symbol_name = argv[1];
	kp.pre_handler = handler_pre;
	kp.post_handler = handler_post;
	ret = register_kprobe(&kp);
	if (ret < 0) {
		fprintf(stderr, "register_kprobe failed, returned %d: %s\n", ret,
		        ukp_kprobe_error());
		return 1;
	}
	printf("Planted kprobe at %p\n", (void *)kp.addr);
	setenv("EXAMPLE", "yes", 1);
	unregister_kprobe(&kp);
	printf("kprobe at %p unregistered\n", (void *)kp.addr);
	return 0;
}
