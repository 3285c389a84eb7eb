// SPDX-License-Identifier: MIT
/*
 * The ways in which calls end, and the stacks on which they may run.  Each line
 * that comes in names a case and how often; what came of it is printed, and how
 * often functions whose names begin with w_ were called.
 */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PROBED extern "C" __attribute__((noinline, noclone, noipa))

static unsigned long calls, destroyed, sum;

struct guard {
	~guard()
	{
		__atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
	}
};

static void called()
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

PROBED long w_leaf(long n)
{
	called();
	return n * 3 + 1;
}

/* All of it is its return. */
extern "C" void w_empty();
__asm__(".text\n"
        ".balign 16\n"
        ".globl w_empty\n"
        ".type w_empty, @function\n"
        "w_empty: ret\n"
        ".size w_empty, . - w_empty\n"
        ".balign 16, 0xcc\n");

static void empties()
{
	called();
	w_empty();
}

/* --- exceptions: through, caught above, rethrown, within destructors --- */

PROBED long w_throws(long n)
{
	guard g;

	called();
	if (n % 3)
		throw std::runtime_error("thrown");
	return w_leaf(n);
}

struct thrower {
	long n;
	~thrower()
	{
		try {
			sum += w_throws(n);
		} catch (std::exception &) {
			sum += 5;
		}
	}
};

PROBED long w_nests(long n)
{
	thrower t{ n + 1 };
	guard g;

	called();
	return w_throws(n);
}

PROBED long w_rethrows(long n)
{
	called();
	try {
		return w_nests(n);
	} catch (std::exception &) {
		if (n % 2)
			throw;
		return -1;
	}
}

static void exceptions(long n)
{
	try {
		sum += w_rethrows(n);
	} catch (std::exception &) {
		sum += 7;
	}
}

/* --- longjmp, also from a signal handler --- */

static thread_local sigjmp_buf back;

PROBED long w_jumps(long n)
{
	called();
	if (!(n % 7))
		siglongjmp(back, 1);
	if (!(n % 5))
		raise(SIGUSR1);
	return n;
}

PROBED long w_over(long n)
{
	called();
	return w_jumps(n) + 1;
}

static void out(int)
{
	siglongjmp(back, 2);
}

static void jumps(long n)
{
	int how = sigsetjmp(back, 1);

	sum += how ? 100 * how : w_over(n);
}

/* Many threads, each by itself and all in turns. */
#define CROWD 48

static void *jumps_often(void *times)
{
	for (long i = 0; i < (long)times; i++) {
		if (!sigsetjmp(back, 1))
			w_over(7);
		sched_yield();
	}
	return nullptr;
}

static void crowds(long times)
{
	pthread_t t[CROWD];

	for (auto &thread : t)
		if (pthread_create(&thread, nullptr, jumps_often, (void *)times))
			abort();
	for (auto &thread : t)
		pthread_join(thread, nullptr);
}

/* A frame that is entered again while it lives. */
PROBED long w_sets(long n)
{
	volatile long laps = 0;

	called();
	if (sigsetjmp(back, 1) < 2 && ++laps < 3)
		w_jumps(7);
	return n + laps;
}

static void twice(long n)
{
	sum += w_sets(n);
}

/* --- threads that end inside --- */

PROBED long w_ends(long how)
{
	guard g;

	called();
	if (how % 2)
		pthread_exit((void *)how);
	for (;;)
		pause();
}

PROBED long w_around(long how)
{
	guard g;

	called();
	return w_ends(how) + 1;
}

static void *runs(void *how)
{
	guard g;

	return (void *)w_around((long)how);
}

static void threads(long n)
{
	pthread_t t;
	void *ret;

	if (pthread_create(&t, nullptr, runs, (void *)n))
		abort();
	if (!(n % 2))
		pthread_cancel(t);
	pthread_join(t, &ret);
	sum += ret == PTHREAD_CANCELED ? 3 : (long)ret;
}

/* --- backtrace --- */

PROBED long w_walks(long n)
{
	void *at[64];

	called();
	return n > 0 ? w_walks(n - 1) + 0 * n : backtrace(at, 64);
}

static void walks(long n)
{
	sum += w_walks(n % 9);
}

/* --- coroutines: swapcontext, an own switch, in turns and from thread to thread --- */

#define STACK 65536

static ucontext_t outside, inside;
static void *own_outside, *own_inside;
static long passed;
static char stack[STACK] __attribute__((aligned(64)));

extern "C" void own_switch(void **save, void *to);
__asm__(".text\n"
        ".type own_switch, @function\n"
        "own_switch:\n"
        "	push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, (%rdi)\n"
        "	mov %rsi, %rsp\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "	ret\n"
        ".size own_switch, . - own_switch\n");

static void (*yields)();

PROBED long w_yields(long n)
{
	called();
	passed = n;
	yields();
	return n + 1;
}

PROBED long w_deep(long n)
{
	called();
	return n ? w_deep(n - 1) + w_yields(n) : 0;
}

static void coroutine()
{
	for (;;) {
		sum += w_deep(5);
		passed = -1;
		yields();
	}
}

static void by_context()
{
	swapcontext(&inside, &outside);
}

static void by_own()
{
	own_switch(&own_inside, own_outside);
}

static void enter_context()
{
	swapcontext(&outside, &inside);
}

static void enter_own()
{
	own_switch(&own_outside, own_inside);
}

static void *enters(void *enter)
{
	((void (*)())enter)();
	return nullptr;
}

/* Each step in a thread of its own, if asked to. */
static void laps(void (*enter)(), bool migrate)
{
	pthread_t t;

	do {
		sum += w_leaf(1);
		if (!migrate) {
			enter();
			continue;
		}
		if (pthread_create(&t, nullptr, enters, (void *)enter))
			abort();
		pthread_join(t, nullptr);
	} while (passed >= 0);
}

static void contexts(long n, bool migrate)
{
	yields = by_context;
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK;
	makecontext(&inside, coroutine, 0);
	laps(enter_context, migrate);
}

static void *begins(char *end, void (*fn)())
{
	void **top = (void **)(end - 64);

	*--top = nullptr;
	*--top = (void *)fn;
	return top - 6;
}

static void switches(long n, bool migrate)
{
	yields = by_own;
	own_inside = begins(stack + STACK, coroutine);
	laps(enter_own, migrate);
}

/* --- a coroutine that nobody enters again, whose stack is gone when something is thrown --- */

static void *abandoned;

static void *leaves_it(void *n)
{
	own_inside = begins((char *)abandoned + STACK, coroutine);
	enter_own();
	munmap(abandoned, STACK);
	exceptions((long)n);
	return nullptr;
}

static void abandons(long n)
{
	pthread_t t;

	/* Above the stacks of threads to come. */
	abandoned = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	yields = by_own;
	if (pthread_create(&t, nullptr, leaves_it, (void *)n))
		abort();
	pthread_join(t, nullptr);
}

/* --- coroutines that share a stack: what the others have there is copied away and back --- */

#define SHARED 8192
#define SHARING 3

static struct {
	void *sp;
	char saved[SHARED];
} sharing[SHARING];

PROBED long w_breaks(long n)
{
	called();
	w_yields(n);
	throw n;
}

static void shares()
{
	for (;;) {
		sum += w_deep(4);
		try {
			w_breaks(2);
		} catch (long n) {
			sum += n;
		}
		passed = -1;
		yields();
	}
}

/* True: it has come to its end. */
static bool shared_step(int i)
{
	char *shared = stack + STACK - SHARED;
	auto &s = sharing[i];

	if (s.sp)
		memcpy(shared, s.saved, SHARED);
	own_inside = s.sp ? s.sp : begins(stack + STACK, shares);
	passed = 0;
	yields = by_own;
	enter_own();
	s.sp = own_inside;
	memcpy(s.saved, shared, SHARED);
	memset(shared, 0, SHARED);
	return passed < 0;
}

static void copies(long n)
{
	long i, lap, left = 0;

	for (i = 0; i < SHARING; i++)
		sharing[i].sp = nullptr;
	for (lap = 0; left < SHARING; lap++) {
		left += shared_step(lap % SHARING);
		for (i = 0; i < 40; i++)
			jumps(7);
	}
}

/* One that is away between this and the next. */
static void goes(long n)
{
	sharing[0].sp = nullptr;
	shared_step(0);
}

static void comes(long n)
{
	while (!shared_step(0))
		;
}

/* --- vfork: the child runs on the parent's stack --- */

PROBED long w_child(long n)
{
	called();
	return w_leaf(n) & 63;
}

PROBED __attribute__((no_sanitize("all"))) long w_forks(long n)
{
	volatile pid_t pid;
	int st = 0;

	called();
	pid = vfork();
	if (!pid)
		_exit((int)w_child(n));
	waitpid(pid, &st, 0);
	return WEXITSTATUS(st);
}

static void one(const char *name, long n)
{
	if (!strcmp(name, "exceptions"))
		exceptions(n);
	else if (!strcmp(name, "jumps"))
		jumps(n);
	else if (!strcmp(name, "empties"))
		empties();
	else if (!strcmp(name, "storms"))
		jumps(7);
	else if (!strcmp(name, "crowds"))
		crowds(100);
	else if (!strcmp(name, "twice"))
		twice(n);
	else if (!strcmp(name, "threads"))
		threads(n);
	else if (!strcmp(name, "walks"))
		walks(n);
	else if (!strcmp(name, "contexts"))
		contexts(n, false);
	else if (!strcmp(name, "contexts-move"))
		contexts(n, true);
	else if (!strcmp(name, "switches"))
		switches(n, false);
	else if (!strcmp(name, "switches-move"))
		switches(n, true);
	else if (!strcmp(name, "abandons"))
		abandons(n);
	else if (!strcmp(name, "copies"))
		copies(n);
	else if (!strcmp(name, "goes"))
		goes(n);
	else if (!strcmp(name, "comes"))
		comes(n);
	else if (!strcmp(name, "forks"))
		sum += w_forks(n);
	else
		abort();
}

/* What is resident, in KiB. */
static long resident()
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		abort();
	fclose(f);
	return pages * 4;
}

int main()
{
	char line[64], name[32];
	long n, times;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	signal(SIGUSR1, out);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%31s %ld", name, &times) == 2) {
		calls = destroyed = sum = 0;
		for (n = 1; n <= times; n++)
			one(name, n);
		printf("result %s: %lu %lu\ncalls %lu\nresident %ld\ndone %s\n", name, sum,
		       destroyed, calls, resident(), name);
	}
	return 0;
}
