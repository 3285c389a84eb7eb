/* SPDX-License-Identifier: MIT */
/* System calls in a foreign process, of which nothing remains. */
#include "help.h"
#include "targets/targets.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/ptrace.h>

#define NR_CALLS 20

/* Attach, call, let go. */
static void disturb(pid_t pid)
{
	struct inject *t = opened(pid);
	long addr;
	int i;

	seized(t);
	begun(t);
	for (i = 0; i < NR_CALLS; i++) {
		addr = inject_syscall(t, SYS_mmap, 0, 8192, PROT_READ | PROT_EXEC,
		                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(addr > 0);
		assert_int_equal(inject_write(t, addr, "written", 8), 0);
		assert_int_equal(inject_syscall(t, SYS_munmap, addr, 8192, 0, 0, 0, 0), 0);
	}
	inject_end(t);
	inject_close(t);
	assert_int_equal(status_number(pid, "TracerPid"), 0);
}

struct piped {
	pid_t pid;
	int in, out;
};

static void start(struct piped *p, const char *path)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fflush(NULL);
	p->pid = fork();
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

#define IN_READ "0 0x0 " /* of standard input */

/* What it has printed so far, until so many answers; 0: until its end. */
static void hear(const struct piped *p, char *text, size_t size, int answers)
{
	size_t len = strlen(text);
	const char *at = text;
	ssize_t n;
	int i;

	for (;;) {
		for (i = 0, at = text; (at = strstr(at, "\n\n")); i++)
			at += 2;
		if (answers && i >= answers)
			return;
		n = read(p->out, text + len, size - 1 - len);
		if (n <= 0)
			break;
		len += n;
		text[len] = '\0';
	}
	assert_int_equal(answers, 0);
}

/* The program blocked in read(), attached to before each line: its output must not show it. */
static void attach_to_echo(const char *compiler, const char *flags)
{
	const char *path = target_build("echo", compiler, flags);
	char text[512] = "";
	struct piped p;

	if (!path) {
		print_message("skipped: %s %s can't build tests/targets/echo.c here\n", compiler,
		              flags);
		skip();
	}
	start(&p, path);
	await_call(p.pid, IN_READ);
	disturb(p.pid);
	await_call(p.pid, IN_READ);
	assert_int_equal(write(p.in, "one\n", 4), 4);
	hear(&p, text, sizeof(text), 1);
	await_call(p.pid, IN_READ);
	disturb(p.pid);
	assert_int_equal(write(p.in, "two\n", 4), 4);
	hear(&p, text, sizeof(text), 2);
	await_call(p.pid, IN_READ);
	disturb(p.pid);
	close(p.in);
	hear(&p, text, sizeof(text), 0);
	assert_string_equal(text,
	                    "read 4 errno 0: one\n\nread 4 errno 0: two\n\nread 0 errno 0: \n");
	assert_int_equal(child_status(p.pid), 7 << 8);
	close(p.out);
}

static void a_dynamic_program_is_not_disturbed(void **state)
{
	attach_to_echo("gcc", "");
}

static void a_static_program_is_not_disturbed(void **state)
{
	attach_to_echo("gcc", "-static");
}

static void a_static_pie_program_is_not_disturbed(void **state)
{
	attach_to_echo("gcc", "-static-pie");
}

static void a_musl_program_is_not_disturbed(void **state)
{
	attach_to_echo("musl-gcc", "");
}

static void a_static_musl_program_is_not_disturbed(void **state)
{
	attach_to_echo("musl-gcc", "-static");
}

static void a_stripped_program_is_not_disturbed(void **state)
{
	attach_to_echo("gcc", "-s");
}

/* Counts in registers of every kind; any change of one ends it with 1. */
static int run_registers(void *arg)
{
	volatile long *stop = arg;
	long bad;

	do {
		bad = 0;
		__asm__ volatile("movq $0x1111, %%r12\n\t"
		                 "movq %%r12, %%xmm7\n\t"
		                 "movq %%r12, %%mm3\n\t"
		                 "movq $0x2222, -120(%%rsp)\n\t"
		                 "movl $100000, %%ecx\n\t"
		                 "stc\n"
		                 "1:	jnc 2f\n\t"
		                 "movq %%xmm7, %%rax\n\t"
		                 "movq %%mm3, %%rdx\n\t"
		                 "movq -120(%%rsp), %%r11\n\t"
		                 "leaq -0x1111(%%rax), %%rax\n\t"
		                 "leaq -0x1111(%%rdx), %%rdx\n\t"
		                 "leaq -0x2222(%%r11), %%r11\n\t"
		                 "leaq (%%rax,%%rdx), %%rax\n\t"
		                 "leaq (%%rax,%%r11), %%rax\n\t"
		                 "leaq (%0,%%rax), %0\n\t"
		                 "leal -1(%%rcx), %%ecx\n\t"
		                 "jrcxz 3f\n\t"
		                 "jmp 1b\n"
		                 "2:	movl $1, %k0\n"
		                 "3:	emms"
		                 : "+&r"(bad)
		                 :
		                 : "rax", "rcx", "rdx", "r11", "r12", "xmm7", "mm3", "memory",
		                   "cc");
	} while (!bad && !*stop);
	return bad ? 1 : 7;
}

static void registers_flags_vectors_and_red_zone_are_as_before(void **state)
{
	volatile long *stop = shared_page();
	pid_t pid = child(run_registers, (void *)stop);
	int i;

	for (i = 0; i < 100; i++) {
		struct inject *t = opened(pid);
		uint64_t at;
		char full[256];

		seized(t);
		begun(t);
		at = inject_scratch(t, sizeof(full));
		assert_true(at);
		memset(full, 0xff, sizeof(full));
		assert_int_equal(inject_write(t, at, full, sizeof(full)), 0);
		assert_int_equal(inject_syscall(t, SYS_getppid, 0, 0, 0, 0, 0, 0), getpid());
		inject_end(t);
		inject_close(t);
	}
	*stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static int run_pause(void *arg)
{
	while (pause())
		;
	return 0;
}

static void scratch_gets_its_contents_back(void **state)
{
	pid_t pid = child(run_pause, NULL);
	struct inject *t = opened(pid);
	char before[2048], after[2048], fill[700];
	uint64_t sp, at[3];
	int i;

	await_state(pid, 'S');
	seized(t);
	sp = inject_thread_at(t, 0)->regs.rsp;
	assert_int_equal(inject_read(t, sp - sizeof(before), before, sizeof(before)), 0);
	begun(t);
	memset(fill, 0xaa, sizeof(fill));
	for (i = 0; i < 3; i++) {
		at[i] = inject_scratch(t, 500);
		assert_int_equal(at[i] % 16, 0);
		assert_true(at[i] + 500 <= (i ? at[i - 1] : sp - 128));
		assert_int_equal(inject_write(t, at[i], fill, 500), 0);
	}
	/* a string argument arrives */
	assert_int_equal(inject_write(t, at[2], "renamed", 8), 0);
	assert_int_equal(inject_syscall(t, SYS_prctl, PR_SET_NAME, at[2], 0, 0, 0, 0), 0);
	inject_end(t);
	assert_int_equal(inject_read(t, sp - sizeof(after), after, sizeof(after)), 0);
	assert_memory_equal(before, after, sizeof(before));
	inject_close(t);
	child_kill(pid);
}

static int run_tiny_stack(void *arg)
{
	char *p = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE);
	__asm__ volatile("mov %0, %%rsp\n	movq $1, (%1)\n1:	jmp 1b"
	                 :
	                 : "r"(p + 4096 + 192), "r"(arg));
	return 0;
}

static void scratch_is_mapped_where_the_stack_has_no_room(void **state)
{
	volatile long *ready = shared_page();
	pid_t pid = child(run_tiny_stack, (void *)ready);
	struct inject *t = opened(pid);
	char text[8];
	uint64_t at;

	await_word(ready, 1);
	seized(t);
	begun(t);
	at = inject_scratch(t, 4000);
	assert_true(at);
	assert_int_equal(inject_write(t, at, "renamed", 8), 0);
	assert_int_equal(inject_syscall(t, SYS_prctl, PR_SET_NAME, at, 0, 0, 0, 0), 0);
	inject_end(t);
	assert_true(inject_read(t, at, text, sizeof(text)) < 0);
	inject_close(t);
	child_kill(pid);
}

static void errors_of_a_call_come_back_as_numbers(void **state)
{
	pid_t pid = child(run_pause, NULL);
	struct inject *t = opened(pid);

	seized(t);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), -EINVAL);
	begun(t);
	assert_int_equal(inject_syscall(t, SYS_close, 12345, 0, 0, 0, 0, 0), -EBADF);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	inject_end(t);
	inject_close(t);
	child_kill(pid);
}

static void many_calls_are_made_in_their_order(void **state)
{
	pid_t pid = child(run_pause, NULL);
	struct inject_call v[40], one = { SYS_getpid, { 0 }, -1 };
	struct inject *t = opened(pid);
	long addr = 0;
	int i, k;

	for (k = 0; k < 20; k++) {
		seized(t);
		begun(t);
		addr = inject_syscall(t, SYS_mmap, addr, sizeof(v) / sizeof(*v) * 4096, PROT_NONE,
		                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(addr > 0);
		for (i = 0; i < 40; i++)
			v[i] = (struct inject_call){ SYS_mmap,
				                     { addr + i * 4096, 4096, PROT_READ,
				                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				                       -1 },
				                     -1 };
		v[1] = (struct inject_call){ SYS_close, { 12345 }, -1 };
		assert_int_equal(inject_calls(t, v, 40), 0);
		for (i = 0; i < 40; i++)
			assert_int_equal(v[i].ret, i == 1 ? -EBADF : addr + i * 4096);
		assert_int_equal(inject_calls(t, &one, 1), 0);
		assert_int_equal(one.ret, pid);
		assert_int_equal(inject_syscall(t, SYS_munmap, addr, 40 * 4096, 0, 0, 0, 0), 0);
		inject_end(t);
		inject_release(t);
	}
	inject_close(t);
	child_kill(pid);
}

/* What the target does until it is told to stop. */
struct worked {
	volatile long stop, bad, rounds, handled;
	int go[2];    /* a pipe that nobody writes to for a while; -1: it computes */
	bool handles; /* every signal that does nothing by default */
};

static struct worked *worked;

static void not_expected(int sig)
{
	worked->handled++;
}

/* Registers and vector registers that hold something, checked again and again. */
static void compute(struct worked *w)
{
	long a = 1, b = 2, c = 3, d = 4;
	double x = 0.5, y = 0.25;

	while (!w->stop) {
		__asm__ volatile("nop" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+x"(x), "+x"(y));
		if (a != 1 || b != 2 || c != 3 || d != 4 || x != 0.5 || y != 0.25)
			w->bad++;
		w->rounds++;
	}
}

static int run_worked(void *arg)
{
	struct worked *w = arg;
	sigset_t set;
	char byte;
	int sig;

	worked = w;
	for (sig = 1; w->handles && sig < NSIG; sig++)
		signal(sig, not_expected);
	if (w->go[0] >= 0 && (read(w->go[0], &byte, 1) != 1 || byte != 'x'))
		w->bad++;
	compute(w);
	sigprocmask(SIG_BLOCK, NULL, &set);
	return !w->bad && !w->handled && sigisemptyset(&set) ? 7 : 1;
}

/* A tracer that the target ends in the midst of its calls: 9 is what it ends by. */
static int run_killed_tracer(void *arg)
{
	pid_t pid = *(pid_t *)arg;
	struct inject *t = opened(pid);
	struct inject_call v[3] = { { SYS_getpid, { 0 }, 0 },
		                    { SYS_kill, { getpid(), SIGKILL }, 0 },
		                    { SYS_getpid, { 0 }, 0 } };

	seized(t);
	begun(t);
	inject_calls(t, v, 3);
	return 1;
}

/* One that is killed after its calls, before it lets go: it has taken the signal. */
static int killed_at_rest(pid_t pid, bool ended)
{
	struct inject *t = opened(pid);
	struct inject_call v[2] = { { SYS_getpid, { 0 }, 0 }, { SYS_getpid, { 0 }, 0 } };

	seized(t);
	begun(t);
	inject_calls(t, v, 2);
	if (ended)
		inject_end(t);
	if (v[1].ret == pid)
		kill(getpid(), SIGKILL);
	return 1;
}

static int run_killed_at_rest(void *arg)
{
	return killed_at_rest(*(pid_t *)arg, false);
}

static int run_killed_at_end(void *arg)
{
	return killed_at_rest(*(pid_t *)arg, true);
}

/* One that has made no call yet. */
static int run_killed_at_begin(void *arg)
{
	struct inject *t = opened(*(pid_t *)arg);
	struct err err = ERR_INIT;

	seized(t);
	if (!inject_begin(t, &err))
		kill(getpid(), SIGKILL);
	return 1;
}

static void outlives(int (*tracer)(void *), bool blocked, bool handles)
{
	struct worked *w = shared_page();
	pid_t pid, killer;
	long rounds;
	int i;

	memset(w, 0, sizeof(*w));
	w->go[0] = -1;
	w->handles = handles;
	if (blocked)
		assert_int_equal(pipe(w->go), 0);
	pid = child(run_worked, w);
	if (blocked)
		await_state(pid, 'S');
	else
		await_word(&w->rounds, 1);
	for (i = 1; i <= 20; i++) {
		killer = child(tracer, &pid);
		assert_int_equal(child_status(killer), SIGKILL);
		if (blocked)
			await_state(pid, 'S');
		rounds = w->rounds;
		if (!blocked)
			await_word(&w->rounds, rounds + 1);
	}
	w->stop = 1;
	if (blocked)
		assert_int_equal(write(w->go[1], "x", 1), 1);
	assert_int_equal(child_status(pid), 7 << 8);
}

static void outlives_each_way(int (*tracer)(void *))
{
	outlives(tracer, false, false);
	outlives(tracer, true, false);
	outlives(tracer, false, true);
	outlives(tracer, true, true);
}

static void a_tracer_killed_amid_its_calls_harms_nobody(void **state)
{
	outlives_each_way(run_killed_tracer);
}

static void a_tracer_killed_after_its_calls_harms_nobody(void **state)
{
	outlives_each_way(run_killed_at_rest);
	outlives_each_way(run_killed_at_end);
}

static void a_tracer_killed_before_its_calls_harms_nobody(void **state)
{
	outlives_each_way(run_killed_at_begin);
}

/* Code that isn't the runner's is not run. */
static void a_runner_that_was_overwritten_is_not_used(void **state)
{
	pid_t pid = child(run_pause, NULL);
	struct inject_call v[2] = { { SYS_getpid, { 0 }, -1 }, { SYS_getpid, { 0 }, -1 } };
	struct inject *t = opened(pid);
	long page;

	seized(t);
	begun(t);
	page = inject_syscall(t, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC,
	                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page > 0);
	inject_use_runner(t, page); /* zeroes */
	assert_int_equal(inject_calls(t, v, 2), 0);
	assert_int_equal(v[0].ret, pid);
	assert_int_equal(v[1].ret, pid);
	inject_end(t);
	inject_close(t);
	child_kill(pid);
}

static void nothing(int sig)
{
}

/* Ends with 7 if SIGTRAP still is blocked and handled, and the mask otherwise empty. */
static int run_sigtrap(void *arg)
{
	volatile long *stop = arg;
	struct sigaction sa;
	sigset_t set;

	signal(SIGTRAP, nothing);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	stop[1] = 1;
	stay_until(stop);
	sigprocmask(SIG_BLOCK, NULL, &set);
	sigaction(SIGTRAP, NULL, &sa);
	return sa.sa_handler == nothing && sigismember(&set, SIGTRAP) && !sigismember(&set, SIGUSR1)
	               ? 7
	               : 1;
}

static int run_ignored(void *arg)
{
	volatile long *stop = arg;
	struct sigaction sa;

	signal(SIGTRAP, SIG_IGN);
	stop[1] = 1;
	stay_until(stop);
	sigaction(SIGTRAP, NULL, &sa);
	return sa.sa_handler == SIG_IGN ? 7 : 1;
}

static void sigtrap_stays(int (*run)(void *))
{
	volatile long *stop = shared_page();
	pid_t pid = child(run, (void *)stop);
	int i;

	await_word(stop + 1, 1);
	for (i = 0; i < 20; i++)
		disturb(pid);
	*stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static void a_blocked_and_handled_sigtrap_stays_so(void **state)
{
	sigtrap_stays(run_sigtrap);
}

static void an_ignored_sigtrap_stays_so(void **state)
{
	sigtrap_stays(run_ignored);
}

static volatile long traps_handled;

static void count_trap(int sig)
{
	traps_handled++;
}

/* Meets breakpoints of its own all the time; each is handled once, where it is. */
static int run_traps(void *arg)
{
	volatile long *stop = arg;
	long i, x;

	signal(SIGTRAP, count_trap);
	for (i = 1; !*stop; i++) {
		__asm__ volatile("int3; lea 1(%1), %0" : "=r"(x) : "r"(i) : "memory");
		if (traps_handled != i || x != i + 1)
			return 1;
		stop[1] = i;
	}
	return 7;
}

static void a_breakpoint_that_is_met_is_delivered(void **state)
{
	volatile long *stop = shared_page();
	pid_t pid = child(run_traps, (void *)stop);
	struct inject *t = opened(pid);
	int i;

	await_word(stop + 1, 1);
	for (i = 0; i < 2000; i++) {
		seized(t);
		begun(t);
		assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		inject_end(t);
		inject_release(t);
	}
	inject_close(t);
	*stop = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static int run_sigsuspend(void *arg)
{
	sigset_t set;

	signal(SIGUSR1, nothing);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	*(volatile long *)arg = 1;
	sigsuspend(&set);
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGUSR1) ? 7 : 1;
}

static void a_signal_for_sigsuspend_during_a_call_of_ours_arrives(void **state)
{
	volatile long *ready = shared_page();
	pid_t pid = child(run_sigsuspend, (void *)ready);
	struct inject *t;

	await_word(ready, 1);
	await_state(pid, 'S');
	t = opened(pid);
	seized(t);
	assert_int_equal(inject_thread_at(t, 0)->sigblk, 1ull << (SIGUSR1 - 1));
	begun(t);
	kill(pid, SIGUSR1);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	inject_end(t);
	inject_close(t);
	assert_int_equal(child_status(pid), 7 << 8);
}

/* mmap kills; it ends when it is told to. */
static int run_seccomp(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, code };
	volatile long *ready = arg;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 1;
	*ready = 1;
	stay_until(ready + 1);
	return 7;
}

static void a_seccomp_filter_is_suspended_for_our_calls(void **state)
{
	volatile long *ready = shared_page();
	pid_t pid;

	skip_without_cap_sys_admin(); /* else a filter can't be suspended */
	pid = child(run_seccomp, (void *)ready);
	await_word(ready, 1);
	disturb(pid);
	ready[1] = 1;
	assert_int_equal(child_status(pid), 7 << 8);
}

static int run_unprivileged_attach(void *arg)
{
	struct err err = ERR_INIT;
	struct inject *t;
	volatile long *ready = shared_page();
	pid_t pid;

	if (!geteuid() && (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1)))
		return 1;
	pid = child(run_seccomp, (void *)ready);
	await_word(ready, 1);
	if (inject_open(&t, pid, &err) || inject_seize(t, &err))
		return 2;
	if (inject_begin(t, &err) != -EPERM || !strstr(err.text, "seccomp"))
		return 3;
	inject_close(t);
	ready[1] = 1;
	return child_status(pid) == 7 << 8 ? 7 : 4;
}

static void without_privilege_a_seccomp_filter_is_respected(void **state)
{
	skip_if_yama_forbids();
	assert_int_equal(child_status(child(run_unprivileged_attach, NULL)), 7 << 8);
}

static void registers_set_at_the_stop_are_those_it_goes_on_with(void **state)
{
	volatile long *ready = shared_page();
	pid_t pid = child(run_tiny_stack, (void *)ready);
	struct inject *t = opened(pid);
	struct user_regs_struct regs;

	await_word(ready, 1);
	seized(t);
	regs = inject_thread_at(t, 0)->regs;
	regs.r15 = 0x1234;
	begun(t);
	assert_int_equal(inject_set_regs(t, 0, &regs), 0);
	assert_int_equal(inject_syscall(t, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	inject_end(t);
	inject_release(t);
	nap_ms(5);
	seized(t);
	assert_int_equal(inject_thread_at(t, 0)->regs.r15, 0x1234);
	inject_close(t);
	child_kill(pid);
	munmap((void *)ready, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dynamic_program_is_not_disturbed),
		cmocka_unit_test(a_static_program_is_not_disturbed),
		cmocka_unit_test(a_static_pie_program_is_not_disturbed),
		cmocka_unit_test(a_musl_program_is_not_disturbed),
		cmocka_unit_test(a_static_musl_program_is_not_disturbed),
		cmocka_unit_test(a_stripped_program_is_not_disturbed),
		cmocka_unit_test(registers_flags_vectors_and_red_zone_are_as_before),
		cmocka_unit_test(scratch_gets_its_contents_back),
		cmocka_unit_test(scratch_is_mapped_where_the_stack_has_no_room),
		cmocka_unit_test(errors_of_a_call_come_back_as_numbers),
		cmocka_unit_test(many_calls_are_made_in_their_order),
		cmocka_unit_test(a_runner_that_was_overwritten_is_not_used),
		cmocka_unit_test(a_blocked_and_handled_sigtrap_stays_so),
		cmocka_unit_test(an_ignored_sigtrap_stays_so),
		cmocka_unit_test(a_breakpoint_that_is_met_is_delivered),
		cmocka_unit_test(a_signal_for_sigsuspend_during_a_call_of_ours_arrives),
		cmocka_unit_test(a_seccomp_filter_is_suspended_for_our_calls),
		cmocka_unit_test(without_privilege_a_seccomp_filter_is_respected),
		cmocka_unit_test(registers_set_at_the_stop_are_those_it_goes_on_with),
	};

	const struct CMUnitTest killed[] = {
		cmocka_unit_test(a_tracer_killed_before_its_calls_harms_nobody),
		cmocka_unit_test(a_tracer_killed_amid_its_calls_harms_nobody),
		cmocka_unit_test(a_tracer_killed_after_its_calls_harms_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) +
	       cmocka_run_group_tests_name("with the runner", tests, use_runner, NULL) +
	       cmocka_run_group_tests_name("killed", killed, use_instruction, NULL) +
	       cmocka_run_group_tests_name("killed with the runner", killed, use_runner, NULL);
}
