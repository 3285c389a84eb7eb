/* SPDX-License-Identifier: MIT */
/*
 * The kernel's samples/kprobes/kretprobe_example.c for one's own process: what
 * a function of libc returns and how long it takes, by default setenv().
 *
 *	cc kretprobe_example.c $(pkg-config --cflags --libs ukprobes) && ./a.out [SYMBOL]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ukprobes/kprobes.h>

/* One for each call that is on its way. */
struct my_data {
	struct timespec entry_stamp;
};

static int entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct my_data *data = (struct my_data *)ri->data;

	clock_gettime(CLOCK_MONOTONIC, &data->entry_stamp);
	return 0;
}

static int ret_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct my_data *data = (struct my_data *)ri->data;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%s returned 0x%lx and took %lld ns to execute\n", get_kretprobe(ri)->kp.symbol_name,
	       regs_return_value(regs),
	       (now.tv_sec - data->entry_stamp.tv_sec) * 1000000000ll + now.tv_nsec -
	               data->entry_stamp.tv_nsec);
	return 0;
}

static struct kretprobe my_kretprobe = {
	.handler = ret_handler,
	.entry_handler = entry_handler,
	.data_size = sizeof(struct my_data),
	.maxactive = 20, /* instances at a time */
};

int main(int argc, char **argv)
{
	int ret;

	my_kretprobe.kp.symbol_name = argc > 1 ? argv[1] : "setenv";
	ret = register_kretprobe(&my_kretprobe);
	if (ret < 0) {
		fprintf(stderr, "register_kretprobe failed, returned %d: %s\n", ret,
		        ukp_kprobe_error());
		return 1;
	}
	printf("Planted return probe at %s: %p\n", my_kretprobe.kp.symbol_name,
	       (void *)my_kretprobe.kp.addr);
	setenv("EXAMPLE", "yes", 1);
	unregister_kretprobe(&my_kretprobe);
	printf("kretprobe at %p unregistered\n", (void *)my_kretprobe.kp.addr);
	printf("Missed probing %d instances of %s\n", my_kretprobe.nmissed,
	       my_kretprobe.kp.symbol_name);
	return 0;
}
