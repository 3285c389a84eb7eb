/* SPDX-License-Identifier: MIT */
/*
 * Jumps over several instructions, with threads in the middle of them: running,
 * in a system call, in a signal handler; and what the program notices of being
 * held for it, which is nothing.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "scenario.h"

enum { ROUNDS = 30, SPAN = 32 << 20 };

#define FUNCTION(name, body)                                                            \
	extern unsigned long name(unsigned long, unsigned long, unsigned long);         \
	extern char name##_at[];                                                        \
	__asm__(".text\n.type " #name ", @function\n" #name ":\n" body "\n.size " #name \
	        ", . - " #name "\n")

FUNCTION(pair, "pair_at: mov %rdi, %rax\n lea 3(%rax,%rsi), %rax\n ret");
FUNCTION(single, "single_at: movabs $0x1122334455, %rax\n add %rdi, %rax\n ret");
/* Reads rdx bytes at rsi with one instruction, the second of the window. */
FUNCTION(reads, "mov %rdx, %rcx\nreads_at: nop\n rep lodsb\n mov %rsi, %rax\n ret");
/* read(): the system call is the window's last instruction. */
FUNCTION(blocks, "blocks_at: xor %eax, %eax\n nop\n syscall\n ret");
FUNCTION(faults, "faults_at: nop\n mov (%rdi), %eax\n lea 1(%rax), %rax\n ret");

static unsigned long hits;
static int stop;

static int pre(struct kprobe *p, struct pt_regs *regs)
{
	__atomic_fetch_add(&hits, 1, __ATOMIC_RELAXED);
	return 0;
}

static int load(const int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store(int *p, int v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static int reset(void **state)
{
	hits = 0;
	stop = 0;
	return 0;
}

static void plant(struct kprobe *kp)
{
	register_ok(register_kprobe(kp));
	wait_for_kprobe_optimizer();
}

static void *read_on(void *buf)
{
	while (!load(&stop))
		if (reads(0, (unsigned long)buf, SPAN) != (unsigned long)buf + SPAN)
			abort();
	return NULL;
}

static void a_thread_in_the_middle_is_moved(void **state)
{
	struct kprobe kp = { .addr = (kprobe_opcode_t *)reads_at, .pre_handler = pre };
	char *buf = mmap(NULL, SPAN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t[2];
	int i;

	assert_true(buf != MAP_FAILED);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_on, buf), 0);
	for (i = 0; i < ROUNDS; i++) {
		unsigned long before = hits;

		plant(&kp);
		has_jump(&kp);
		while (__atomic_load_n(&hits, __ATOMIC_RELAXED) == before)
			sched_yield();
		unregister_kprobe(&kp);
	}
	store(&stop, 1);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	munmap(buf, SPAN);
}

struct blocked {
	pthread_t thread;
	int fd[2], tid;
	unsigned long got;
};

static void *block(void *arg)
{
	struct blocked *b = arg;
	char c;

	store(&b->tid, (int)syscall(SYS_gettid));
	b->got = blocks((unsigned long)b->fd[0], (unsigned long)&c, 1);
	return NULL;
}

/* Until the thread is in this system call. */
static void wait_for_call(int *tid, long nr)
{
	char path[64], line[64];
	long now = -1;
	FILE *f;

	while (!load(tid))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", *tid);
	while (now != nr) {
		sched_yield();
		f = fopen(path, "r");
		if (f && fgets(line, sizeof(line), f))
			now = line[0] >= '0' && line[0] <= '9' ? atol(line) : -1;
		if (f)
			fclose(f);
	}
}

static int handled;

static void on_signal(int sig)
{
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void a_thread_in_a_system_call_goes_on_behind_it(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct kprobe kp = { .addr = (kprobe_opcode_t *)blocks_at, .pre_handler = pre };
	struct blocked b = { .tid = 0 };
	int i;

	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	assert_int_equal(pipe(b.fd), 0);
	for (i = 0; i < ROUNDS; i++) {
		handled = b.tid = 0;
		assert_int_equal(pthread_create(&b.thread, NULL, block, &b), 0);
		wait_for_call(&b.tid, SYS_read);
		plant(&kp);
		has_jump(&kp);
		/* The call starts again: it must find itself, not the middle of a jump. */
		if (i & 1) {
			pthread_kill(b.thread, SIGUSR1);
			while (!load(&handled))
				sched_yield();
		}
		assert_int_equal(write(b.fd[1], "x", 1), 1);
		pthread_join(b.thread, NULL);
		assert_int_equal(b.got, 1);
		assert_int_equal(hits, (unsigned long)i);
		assert_int_equal(write(b.fd[1], "x", 1), 1);
		block(&b);
		assert_int_equal(b.got, 1);
		assert_int_equal(hits, (unsigned long)i + 1);
		unregister_kprobe(&kp);
	}
	close(b.fd[0]);
	close(b.fd[1]);
}

static int inside, release;
static unsigned long good = 41;

static void wait_in_handler(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *c = uc;

	store(&inside, 1);
	while (!load(&release))
		sched_yield();
	c->uc_mcontext.gregs[REG_RDI] = (long)&good;
}

static void *fault(void *result)
{
	static char stack[64 << 10];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };

	sigaltstack(&ss, NULL);
	*(unsigned long *)result = faults(8, 0, 0);
	return NULL;
}

/* The handler's frame leads into the window until it returns. */
static void waits_for_a_handler(int flags)
{
	struct sigaction sa = { .sa_sigaction = wait_in_handler, .sa_flags = SA_SIGINFO | flags };
	struct kprobe kp = { .addr = (kprobe_opcode_t *)faults_at, .pre_handler = pre };
	unsigned long result = 0;
	struct sigaction old;
	pthread_t t;

	inside = release = 0;
	assert_int_equal(sigaction(SIGSEGV, &sa, &old), 0);
	assert_int_equal(pthread_create(&t, NULL, fault, &result), 0);
	while (!load(&inside))
		sched_yield();
	plant(&kp);
	has_breakpoint(&kp, "a thread stays inside");
	assert_int_equal(faults((unsigned long)&good, 0, 0), 42);
	assert_int_equal(hits, 1);
	store(&release, 1);
	pthread_join(t, NULL);
	assert_int_equal(result, 42);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	register_ok(disable_kprobe(&kp));
	register_ok(enable_kprobe(&kp));
	wait_for_kprobe_optimizer();
	has_jump(&kp);
	assert_int_equal(faults((unsigned long)&good, 0, 0), 42);
	assert_int_equal(hits, 2);
	unregister_kprobe(&kp);
}

static void a_thread_in_a_signal_handler_is_waited_for(void **state)
{
	waits_for_a_handler(0);
}

static void also_on_an_alternate_stack(void **state)
{
	waits_for_a_handler(SA_ONSTACK);
}

/* Each blocks in another call; what it returns in the end, or -errno. */
struct sleeper {
	pthread_t thread;
	const char *name;
	long (*call)(int fd);
	long nr;
	int fd[2], tid;
	long ret;
};

static long in_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), n;

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	n = epoll_wait(ep, &ev, 1, -1);
	close(ep);
	return n;
}

static long in_recv(int fd)
{
	struct timeval long_time = { .tv_sec = 3600 };
	char c;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof(long_time));
	return recv(fd, &c, 1, 0);
}

static long in_read(int fd)
{
	char c;

	return read(fd, &c, 1);
}

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;

	store(&s->tid, (int)syscall(SYS_gettid));
	s->ret = s->call(s->fd[0]);
	if (s->ret < 0)
		s->ret = -errno;
	return NULL;
}

static void blocked_calls_see_no_EINTR(void **state)
{
	static struct sleeper s[] = {
		{ .name = "epoll_wait", .call = in_epoll, .nr = SYS_epoll_wait },
		{ .name = "recv", .call = in_recv, .nr = SYS_recvfrom },
		{ .name = "read", .call = in_read, .nr = SYS_read },
	};
	struct kprobe kp = { .addr = (kprobe_opcode_t *)pair_at, .pre_handler = pre };
	unsigned int i, n = sizeof(s) / sizeof(*s);

	for (i = 0; i < n; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i].fd), 0);
		assert_int_equal(pthread_create(&s[i].thread, NULL, sleeps, &s[i]), 0);
	}
	for (i = 0; i < n; i++)
		wait_for_call(&s[i].tid, s[i].nr);
	for (i = 0; i < ROUNDS; i++) {
		plant(&kp);
		has_jump(&kp);
		unregister_kprobe(&kp);
	}
	for (i = 0; i < n; i++) {
		assert_int_equal(write(s[i].fd[1], "x", 1), 1);
		pthread_join(s[i].thread, NULL);
		if (s[i].ret != 1)
			fail_msg("%s: %ld", s[i].name, s[i].ret);
		close(s[i].fd[0]);
		close(s[i].fd[1]);
	}
}

static int nr_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void nothing_of_it_is_a_child_or_stays(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;
	struct kprobe kp = { .addr = (kprobe_opcode_t *)pair_at, .pre_handler = pre };
	int i;

	handled = 0;
	assert_int_equal(sigaction(SIGCHLD, &sa, &old), 0);
	for (i = 0; i < ROUNDS; i++) {
		register_ok(register_kprobe(&kp));
		while (!(kp.flags & KPROBE_FLAG_OPTIMIZED)) {
			assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
			assert_int_equal(errno, ECHILD);
		}
		has_jump(&kp);
		unregister_kprobe(&kp);
	}
	assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
	assert_int_equal(handled, 0);
	wait_for_kprobe_optimizer();
	/* The last steps of its thread are its own. */
	while (nr_threads() != 1)
		sched_yield();
}

/* Signals of the traced go by here. */
static void pass_on(pid_t tid)
{
	int status;

	if (waitpid(tid, &status, __WALL | WNOHANG) == tid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
}

static void let_go(pid_t tid)
{
	int status, event = 0;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	while (!event && waitpid(tid, &status, __WALL) == tid) {
		event = status >> 16;
		ptrace(event ? PTRACE_DETACH : PTRACE_CONT, tid, 0, event ? 0 : WSTOPSIG(status));
	}
}

/* A debugger of the main thread, until it is told to go. */
static pid_t start_tracer(int to[2], int from[2])
{
	pid_t pid, parent = getpid();
	char c = 'y';

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork();
	if (pid)
		return pid;
	if (ptrace(PTRACE_SEIZE, parent, 0, 0))
		c = 'n';
	fcntl(to[0], F_SETFL, O_NONBLOCK);
	if (write(from[1], &c, 1) != 1)
		_exit(1);
	while (read(to[0], &c, 1) != 1)
		pass_on(parent);
	if (c == 'd')
		let_go(parent);
	_exit(write(from[1], "d", 1) != 1);
}

static void a_traced_process_gets_jumps_that_need_no_hold(void **state)
{
	struct kprobe two = { .addr = (kprobe_opcode_t *)pair_at, .pre_handler = pre };
	struct kprobe one = { .addr = (kprobe_opcode_t *)single_at, .pre_handler = pre };
	int to[2], from[2];
	pid_t pid = start_tracer(to, from);
	char c;

	assert_int_equal(read(from[0], &c, 1), 1);
	if (c == 'n') {
		assert_int_equal(write(to[1], "n", 1), 1);
		waitpid(pid, NULL, 0);
		print_message("skip: a child may not trace its parent here\n");
		skip();
	}
	plant(&two);
	plant(&one);
	has_breakpoint(&two, "traced");
	has_jump(&one);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(single(1, 0, 0), 0x1122334456);
	assert_int_equal(hits, 2);
	assert_int_equal(write(to[1], "d", 1), 1);
	while (read(from[0], &c, 1) != 1)
		;
	waitpid(pid, NULL, 0);
	register_ok(disable_kprobe(&two));
	register_ok(enable_kprobe(&two));
	wait_for_kprobe_optimizer();
	has_jump(&two);
	assert_int_equal(pair(4, 5, 0), 12);
	assert_int_equal(hits, 3);
	unregister_kprobe(&two);
	unregister_kprobe(&one);
}

/* A filter that answers ptrace() in its own way. */
static int filter_ptrace(unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int run_filtered(void)
{
	struct kprobe two = { .addr = (kprobe_opcode_t *)pair_at, .pre_handler = pre };
	struct kprobe one = { .addr = (kprobe_opcode_t *)single_at, .pre_handler = pre };
	char why[256];

	if (register_kprobe(&two) || register_kprobe(&one))
		return 1;
	wait_for_kprobe_optimizer();
	if (ukp_kprobe_form(&two, why, sizeof(why)) || ukp_kprobe_form(&one, why, sizeof(why)) != 1)
		return 2;
	return pair(4, 5, 0) != 12 || single(1, 0, 0) != 0x1122334456 || hits != 2;
}

/* Where threads can't be held, be it by refusal or by death, the program is none the worse. */
static void a_filter_leaves_breakpoints_and_the_program_alone(void **state)
{
	static const unsigned int actions[] = { SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_KILL_PROCESS,
		                                SECCOMP_RET_TRAP };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			if (!filter_ptrace(actions[i]))
				execl("/proc/self/exe", "parked", "filtered", NULL);
			_exit(9);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

/* What holds threads is made, and its maker stopped before it can say go; its pid. */
static pid_t stop_at_clone(pid_t program)
{
	struct {
		struct pt_regs r;
		unsigned long rest[6];
	} u;
	int status, sig;
	pid_t pid;

	assert_int_equal(waitpid(program, &status, 0), program);
	ptrace(PTRACE_SETOPTIONS, program, 0,
	       PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (sig = 0, pid = program;; pid = waitpid(-1, &status, __WALL)) {
		assert_true(pid > 0);
		if (!WIFSTOPPED(status))
			continue;
		sig = WSTOPSIG(status);
		ptrace(PTRACE_GETREGS, pid, 0, &u);
		if (sig == (SIGTRAP | 0x80) && u.r.orig_ax == SYS_clone &&
		    (u.r.di & CLONE_UNTRACED) && (long)u.r.ax > 0)
			return (pid_t)u.r.ax;
		ptrace(PTRACE_SYSCALL, pid, 0,
		       sig == SIGTRAP || sig & 0x80 || sig == SIGSTOP ? 0 : sig);
	}
}

static char state_of(pid_t pid)
{
	char path[64], line[512], *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	name_end = strrchr(line, ')');
	return name_end ? name_end[2] : 'X';
}

/* It shares the descriptors: a program that dies meanwhile must be gone with all it had open. */
static void what_holds_threads_dies_with_the_program(void **state)
{
	struct pollfd alive = { .events = POLLIN };
	pid_t program, helper;
	int end[2];

	assert_int_equal(pipe(end), 0);
	program = fork();
	if (!program) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/proc/self/exe", "parked", "dies", NULL);
		_exit(9);
	}
	close(end[1]);
	helper = stop_at_clone(program);
	while (state_of(helper) != 'S')
		usleep(1000);
	kill(program, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	alive.fd = end[0];
	assert_int_equal(poll(&alive, 1, 60000), 1);
	assert_int_equal(alive.revents, POLLHUP);
	close(end[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_thread_in_the_middle_is_moved),
		T(a_thread_in_a_system_call_goes_on_behind_it),
		T(a_thread_in_a_signal_handler_is_waited_for),
		T(also_on_an_alternate_stack),
		T(blocked_calls_see_no_EINTR),
		T(nothing_of_it_is_a_child_or_stays),
		T(a_traced_process_gets_jumps_that_need_no_hold),
		T(a_filter_leaves_breakpoints_and_the_program_alone),
		T(what_holds_threads_dies_with_the_program),
	};

	if (argc > 1)
		return run_filtered();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
