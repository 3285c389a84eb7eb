/* SPDX-License-Identifier: MIT */
/*
 * Under a seccomp filter that kills at any system call but read, write and exit, or,
 * with an argument, denied memory that is writable and executable, also one after the
 * other (77: the kernel can't); "go" calls work().
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) long work(const char *p)
{
	__asm__ volatile("" : "+r"(p));
	return (long)p;
}

static int confine(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(*f), f };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65 /* Linux 6.3 */
#endif

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	char line[16];
	ssize_t n;

	if (argc > 1 && prctl(PR_SET_MDWE, 1, 0, 0, 0))
		return 77;
	if (argc == 1 && confine())
		return 1;
	say("ready\n");
	while ((n = read(0, line, sizeof(line))) > 0) {
		work((const char *)16);
		say("done\n");
	}
	return 0;
}
