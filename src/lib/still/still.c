/* SPDX-License-Identifier: MIT */
/* The helper: stopping all threads and letting them go.  See still.h. */
#include "lib/still/still.h"

#include "engine/arch.h"
#include "engine/signal.h"
#include "wire/instance.h"

enum {
	NR_close = 3,
	NR_lseek = 8,
	NR_rt_sigaction = 13,
	NR_read = 0,
	NR_wait4 = 61,
	NR_ptrace = 101,
	NR_rt_sigtimedwait = 128,
	NR_getppid = 110,
	NR_prctl = 157,
	NR_futex = 202,
	NR_getdents64 = 217,
	NR_clock_gettime = 228,
	NR_tgkill = 234,
	NR_openat = 257,
};

enum {
	PTRACE_CONT = 7,
	PTRACE_GETREGS = 12,
	PTRACE_SETREGS = 13,
	PTRACE_DETACH = 17,
	PTRACE_SEIZE = 0x4206,
	PTRACE_INTERRUPT = 0x4207,
	PTRACE_PEEKSIGINFO = 0x4209,
	EVENT_STOP = 128,
};

#define WNOHANG_WALL (1 | 0x40000000)
#define CLOEXEC 02000000
#define PATIENCE_NS 500000000ull
#define NAP_NS 1000000
#define LOOK_NS 100000000
#define LOOKS 50 /* for our own thread */

#define SIGCHLD_NR 17
#define SIGSYS_NR 31
#define SIGKILL_NR 9

#define ESRCH 3
#define EINTR 4
#define RESTART_NOHAND 514 /* ERESTARTNOHAND: only the kernel and tracers see it */
#define USER_CS 0x33

static long ptrace(long what, int tid, long addr, void *data)
{
	return ukp_arch_syscall(NR_ptrace, what, tid, addr, (long)data);
}

static uint64_t now_ns(void)
{
	uint64_t ts[2] = { 0, 0 };

	ukp_arch_syscall(NR_clock_gettime, 1, (long)ts, 0, 0);
	return ts[0] * 1000000000ull + ts[1];
}

/* Until something happened to a thread that we trace, or a millisecond. */
static void nap(void)
{
	uint64_t set = 1ull << (SIGCHLD_NR - 1), ts[2] = { 0, NAP_NS };

	ukp_arch_syscall(NR_rt_sigtimedwait, (long)&set, 0, (long)ts, 8);
}

/* The state that TID/stat shows: behind the name, which may hold anything. */
static char thread_state(const struct still *s, const char *tid)
{
	char path[32], buf[512];
	long fd, n, i, end = 0;

	for (i = 0; i < 16 && tid[i]; i++)
		path[i] = tid[i];
	path[i++] = '/';
	path[i++] = 's';
	path[i++] = 't';
	path[i++] = 'a';
	path[i++] = 't';
	path[i] = 0;
	fd = ukp_arch_syscall(NR_openat, s->task_fd, (long)path, CLOEXEC, 0);
	if (fd < 0)
		return 'X';
	n = ukp_arch_syscall(NR_read, fd, (long)buf, sizeof(buf), 0);
	ukp_arch_syscall(NR_close, fd, 0, 0, 0);
	for (i = 0; i < n; i++)
		if (buf[i] == ')')
			end = i;
	return end && end + 2 < n ? buf[end + 2] : 'X';
}

static bool known(const struct still *s, int tid)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (s->thread[i].tid == tid && s->thread[i].state != STILL_GONE)
			return true;
	return false;
}

/* Nobody is seized in an uninterruptible sleep: he would stop when it ends. */
static int seize(struct still *s, int tid, const char *name)
{
	struct still_thread *t;
	char state;
	long ret;

	if (known(s, tid))
		return STILL_OK;
	state = thread_state(s, name);
	if (state == 'Z' || state == 'X')
		return STILL_OK;
	if (state == 'D')
		return STILL_LATER;
	if (s->nr == s->max)
		return STILL_MANY;
	ret = ptrace(PTRACE_SEIZE, tid, 0, NULL);
	if (ret == -ESRCH)
		return STILL_OK;
	if (ret) {
		/* It may have ended since: then it isn't the rights. */
		state = thread_state(s, name);
		return state == 'Z' || state == 'X' ? STILL_OK : STILL_TRACED;
	}
	t = &s->thread[s->nr++];
	t->tid = tid;
	t->state = STILL_RUNNING;
	t->changed = false;
	return STILL_OK;
}

struct dirent64 {
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static int number(const char *s)
{
	int n = 0;

	while (*s >= '0' && *s <= '9')
		n = n * 10 + (*s++ - '0');
	return n;
}

/* All that the folder shows; LOST: our own thread isn't among them. */
static int seize_once(struct still *s)
{
	char buf[2048] __attribute__((aligned(8)));
	bool ours = false;
	long n, at;
	int ret;

	ukp_arch_syscall(NR_lseek, s->task_fd, 0, 0, 0);
	while ((n = ukp_arch_syscall(NR_getdents64, s->task_fd, (long)buf, sizeof(buf), 0)) > 0)
		for (at = 0; at < n;) {
			const struct dirent64 *e = (void *)(buf + at);
			int tid = number(e->name);

			at += e->len;
			ours = ours || tid == s->tid;
			if (!tid || tid == s->tid)
				continue;
			ret = seize(s, tid, e->name);
			if (ret)
				return ret;
		}
	return ours ? STILL_OK : STILL_LOST;
}

/*
 * Our own thread has to be there: else it is another process's folder (of a
 * foreign /proc), or this one has executed another program.  But the kernel ends
 * a listing early where the thread that it has got to ends just then.
 */
static int seize_listed(struct still *s)
{
	int ret = seize_once(s), looks;

	for (looks = 1; ret == STILL_LOST && looks < LOOKS; looks++) {
		nap();
		ret = seize_once(s);
	}
	return ret;
}

/*
 * An event stop is what we want.  A signal on its way is delivered: the kernel
 * makes the handler's frame and stops then.
 */
static void look(struct still_thread *t)
{
	int status, sig;
	long ret = ukp_arch_syscall(NR_wait4, t->tid, (long)&status, WNOHANG_WALL, 0);

	if (!ret)
		return;
	if (ret < 0 || (status & 0xff) != 0x7f) {
		t->state = STILL_GONE;
		return;
	}
	sig = status >> 8 & 0xff;
	if (status >> 16 == EVENT_STOP)
		t->state = STILL_STOPPED;
	else
		ptrace(PTRACE_CONT, t->tid, 0, (void *)(long)sig);
}

/* Calls that would say EINTR at once are made to start again, unless a handler runs. */
static void read_regs(struct still *s, struct still_thread *t)
{
	struct pt_regs *r = &t->regs.r;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs)) {
		t->state = STILL_GONE; /* killed */
		return;
	}
	if (r->cs == USER_CS && (long)r->ax == -EINTR && r->orig_ax < s->nr_restarts &&
	    s->restarts[r->orig_ax / 8] >> (r->orig_ax % 8) & 1) {
		r->ax = -(unsigned long)RESTART_NOHAND;
		t->changed = true;
	}
}

static int collect(struct still *s, uint32_t from, uint64_t deadline)
{
	uint32_t i;

	for (i = from; i < s->nr; i++) {
		struct still_thread *t = &s->thread[i];

		for (look(t); t->state == STILL_RUNNING; look(t)) {
			if (now_ns() > deadline)
				return STILL_LATER;
			nap();
		}
		if (t->state == STILL_STOPPED)
			read_regs(s, t);
	}
	return STILL_OK;
}

static int hold(struct still *s)
{
	uint64_t deadline = now_ns() + PATIENCE_NS;
	uint32_t before, i, quiet = 0;
	int ret;

	/*
	 * A stopped thread makes no other: a look that finds nobody new is the last,
	 * but for one more, as a listing may end early.
	 */
	do {
		before = s->nr;
		ret = seize_listed(s);
		/* Seizing stops nobody yet: all are to stand at about the same time. */
		for (i = before; i < s->nr; i++)
			ptrace(PTRACE_INTERRUPT, s->thread[i].tid, 0, NULL);
		if (!ret)
			ret = collect(s, before, deadline);
		quiet = s->nr == before ? quiet + 1 : 0;
	} while (!ret && quiet < 2);
	return ret;
}

/* Who has not stopped yet goes on when we end: the kernel takes the request back. */
static void let_go(struct still *s)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++) {
		struct still_thread *t = &s->thread[i];

		if (t->state != STILL_STOPPED)
			continue;
		if (t->changed)
			ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs);
		ptrace(PTRACE_DETACH, t->tid, 0, NULL);
	}
}

bool ukp_still_trapped(const struct still_thread *t)
{
	struct {
		uint64_t off;
		uint32_t flags;
		int32_t nr;
	} args = { 0, 0, 8 };
	struct ukp_siginfo si[8];
	long n, i;

	n = ptrace(PTRACE_PEEKSIGINFO, t->tid, (long)&args, si);
	for (i = 0; i < n; i++)
		if (si[i].si_signo == UKP_SIGTRAP && si[i].si_code == UKP_SI_KERNEL)
			return true;
	return false;
}

/* Our copies of the dispositions: nothing of the program's may run here. */
static void own_signals(void)
{
	static const int sigs[] = { SIGCHLD_NR, SIGSYS_NR };
	struct ukp_sigaction dfl;
	unsigned int i;

	dfl.handler = 0;
	dfl.flags = 0;
	dfl.restorer = 0;
	dfl.mask = 0;
	for (i = 0; i < 2; i++)
		ukp_arch_syscall(NR_rt_sigaction, sigs[i], (long)&dfl, 0, 8);
}

/*
 * Without whoever waits for us there is nothing to do, and nobody to say so: we go
 * with that thread, or find that it went before we had asked for that.
 */
static bool wait_for_go(struct still *s)
{
	const uint64_t look[2] = { 0, LOOK_NS };
	long ppid;

	ukp_arch_syscall(NR_prctl, 1, SIGKILL_NR, 0, 0);
	while (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == STILL_WAIT) {
		ppid = ukp_arch_syscall(NR_getppid, 0, 0, 0, 0);
		if (ukp_arch_syscall(NR_tgkill, ppid, s->tid, 0, 0) == -ESRCH)
			return false;
		ukp_arch_syscall(NR_futex, (long)&s->state, 0, STILL_WAIT, (long)look);
	}
	return true;
}

void ukp_still_main(void *arg)
{
	struct still *s = arg;
	int ret;

	own_signals();
	if (!wait_for_go(s))
		return;
	ret = hold(s);
	if (ret == STILL_OK)
		s->fn(s);
	let_go(s);
	/* Last: whoever finds it knows that all was done. */
	s->result = ret;
}
