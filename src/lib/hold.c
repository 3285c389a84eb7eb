/* SPDX-License-Identifier: MIT */
/*
 * Having all other threads stand still, from the library's own thread: all that
 * the helper (still/still.h) needs is made before, for nothing can be made then.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/eintr.h"
#include "lib/lib.h"
#include "lib/still/settle.h"

#define STACK_SIZE (64u << 10)
#define NR_CALLS 512
#define ROOM 64 /* for threads that are born meanwhile */
#define LOOK_NS 100000000

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

static const char unknown[] = "the threads of this process can't be seen in /proc";
static const char filtered[] = "a seccomp filter may forbid to hold this process's threads";
static const char killed[] = "what would hold the threads was killed, by a seccomp filter perhaps";
static const char traced[] = "this process is traced, or may not be: its threads can't be held";

static uint8_t restarts[NR_CALLS / 8];

/* A file that has but a number, or a field of one that has "name: number". */
static long number_in(const char *path, const char *name)
{
	char line[256];
	long n = -1;
	FILE *f = fopen(path, "re");

	while (f && n < 0 && fgets(line, sizeof(line), f))
		if (!name)
			n = atol(line);
		else if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			n = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return n;
}

/*
 * A filter may kill the helper for what it does.  Since 5.16 a core dump of it
 * would no longer take along all that share its memory.
 */
static bool seccomp_is_dangerous(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	if (number_in("/proc/self/status", "Seccomp") <= 0)
		return false;
	return uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2 || major < 5 ||
	       (major == 5 && minor < 16);
}

static void fill_restarts(void)
{
	long nr;

	for (nr = 0; nr < NR_CALLS; nr++)
		if (eintr_restartable(nr))
			restarts[nr / 8] |= (uint8_t)(1u << nr % 8);
}

/* The writable mappings: where stacks end. */
static int take_stacks(struct settle *st)
{
	struct sym_proc *sym = own_sym_last();
	size_t i, n = sym_nr_maps(sym);
	struct settle_range *r = calloc(n + 1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct sym_map *m = sym_map_at(sym, i);

		if (m->w)
			r[st->nr_stacks++] = (struct settle_range){ m->start, m->end };
	}
	st->stack = r;
	return 0;
}

static int open_all(struct still *s, struct settle *st)
{
	struct stat sb;

	s->task_fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	st->mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (s->task_fd < 0 || st->mem_fd < 0 || fstat(s->task_fd, &sb))
		return errno == ENOENT || errno == EACCES ? STILL_LOST : STILL_LATER;
	s->max = (uint32_t)sb.st_nlink + ROOM;
	s->thread = calloc(s->max, sizeof(*s->thread));
	st->buf = malloc(SETTLE_BUF);
	return s->thread && st->buf && !take_stacks(st) ? STILL_OK : STILL_LATER;
}

static void close_all(struct still *s, struct settle *st)
{
	if (s->task_fd >= 0)
		close(s->task_fd);
	if (st->mem_fd >= 0)
		close(st->mem_fd);
	free(s->thread);
	free(st->buf);
	free((void *)st->stack);
}

static long futex(uint32_t *word, int op, uint32_t val, const struct timespec *ts)
{
	return syscall(SYS_futex, word, op, val, ts, NULL, 0);
}

/*
 * The kernel clears the state; a helper that dumped core it may leave as it is.
 * One that was stopped with its process group has to go on: it holds all others,
 * and a SIGCONT to the program alone doesn't reach it.
 */
static void wait_for(struct still *s, pid_t pid)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	siginfo_t si;
	uint32_t state;

	while ((state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE))) {
		futex(&s->state, FUTEX_WAIT, state, &look);
		si.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &si, WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL))
			break;
		if (si.si_pid == pid && si.si_code != CLD_STOPPED)
			break;
		if (si.si_pid == pid)
			kill((pid_t)pid, SIGCONT);
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* Under Yama's restriction a tracee has to name its tracer. */
static int run_helper(struct still *s, void *stack, bool name_tracer)
{
	const unsigned long flags =
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | CLONE_CHILD_CLEARTID;
	long pid;

	s->nr = 0;
	s->state = STILL_WAIT;
	s->result = STILL_DIED;
	pid = ukp_clone_call(flags, (char *)stack + STACK_SIZE, ukp_still_main, s, &s->state);
	if (pid < 0)
		return STILL_LATER;
	if (name_tracer)
		prctl(PR_SET_PTRACER, pid, 0, 0, 0);
	__atomic_store_n(&s->state, STILL_GO, __ATOMIC_RELEASE);
	futex(&s->state, FUTEX_WAKE, 1, NULL);
	wait_for(s, (pid_t)pid);
	if (name_tracer)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	return s->result;
}

static int run(struct still *s)
{
	static bool name_tracer;
	void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int ret;

	if (stack == MAP_FAILED)
		return STILL_LATER;
	ret = run_helper(s, stack, name_tracer);
	if (ret == STILL_TRACED && !name_tracer &&
	    number_in("/proc/sys/kernel/yama/ptrace_scope", NULL) == 1) {
		name_tracer = true;
		ret = run_helper(s, stack, true);
	}
	munmap(stack, STACK_SIZE);
	return ret;
}

static int checked(const char **why)
{
	static int dangerous = -1;

	if (dangerous < 0) {
		fill_restarts();
		dangerous = seccomp_is_dangerous();
	}
	if (!dangerous)
		return 0;
	*why = filtered;
	return -EPERM;
}

int hold_settle(struct settle_window *w, uint32_t nr, const char **why)
{
	struct settle st = { .window = w, .nr = nr, .mem_fd = -1 };
	struct still s = { .task_fd = -1,
		           .tid = (int32_t)syscall(SYS_gettid),
		           .restarts = restarts,
		           .nr_restarts = NR_CALLS,
		           .fn = ukp_settle,
		           .arg = &st };
	int ret = checked(why);

	if (ret)
		return ret;
	name_hit_range(&st.hit_start, &st.hit_end);
	ret = open_all(&s, &st);
	if (ret == STILL_OK)
		ret = run(&s);
	close_all(&s, &st);
	switch (ret) {
	case STILL_OK:
		return 0;
	case STILL_LATER:
	case STILL_MANY:
		return -EAGAIN;
	case STILL_TRACED:
		*why = traced;
		return -EPERM;
	case STILL_DIED:
		*why = killed;
		return -EPERM;
	}
	*why = unknown;
	return -EPERM;
}
