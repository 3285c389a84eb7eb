/* SPDX-License-Identifier: MIT */
/*
 * straddle THREADS: functions whose first five bytes cross a cache line or a
 * page, 1 to 4 of them before it, as one instruction or as several.  So many
 * threads call them as fast as they can, each interrupted a thousand times a second
 * by a SIGPROF whose handler calls them too.  Each result is checked.
 *
 * Says "ready"; "go" starts that and says "running" when the first signal has come;
 * "mark N" calls each mark_... so often and says "marked"; "stop" ends the threads and
 * says how often each win_... was called, how many signals came in how many
 * milliseconds, and how many results were wrong.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * x + 0x1001: from OFF bytes before a boundary on.  In each, an "add" behind the
 * window is where calls can be counted whatever happens to the window.
 */
__asm__(".text\n"
        ".macro start name, bound, off\n"
        ".balign 4096, 0xcc\n"
        ".skip \\bound - \\off, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".cfi_startproc\n"
        ".endm\n"
        ".macro finish name\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size \\name, . - \\name\n"
        ".pushsection .data.rel.ro\n"
        ".quad \\name\n"
        ".popsection\n"
        ".endm\n"
        ".macro single name, bound, off\n"
        "	start \\name, \\bound, \\off\n"
        "	lea	0x1000(%rdi), %rax\n"
        "	add	$1, %rax\n"
        "	finish \\name\n"
        ".endm\n"
        ".macro several name, bound, off\n"
        "	start \\name, \\bound, \\off\n"
        "	push	%rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset rbx, 0\n"
        "	mov	%rdi, %rbx\n"
        "	lea	0x1000(%rbx), %rax\n"
        "	add	$1, %rax\n"
        "	pop	%rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore rbx\n"
        "	finish \\name\n"
        ".endm\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 8\n"
        ".globl windows\n"
        "windows:\n"
        ".popsection\n"
        ".macro four copy, off\n"
        "	single win_\\copy\\()_line_\\off\\()_one, 256, \\off\n"
        "	several win_\\copy\\()_line_\\off\\()_many, 256, \\off\n"
        "	single win_\\copy\\()_page_\\off\\()_one, 4096, \\off\n"
        "	several win_\\copy\\()_page_\\off\\()_many, 4096, \\off\n"
        ".endm\n"
        ".irp copy, a, b, c\n"
        ".irp off, 1, 2, 3, 4\n"
        "	four \\copy, \\off\n"
        ".endr\n"
        ".endr\n"
        ".pushsection .data.rel.ro\n"
        ".globl marks\n"
        "marks:\n"
        ".popsection\n"
        "single mark_line_one, 256, 3\n"
        "several mark_line_many, 256, 2\n"
        "single mark_page_one, 4096, 1\n"
        "several mark_page_many, 4096, 3\n"
        ".balign 4096, 0xcc\n");

#define NR 48
#define MARKS 4
#define TURN 40
#define REST_US 1000
#define HZ 1000
#define AT_ONCE 4 /* by a signal */

typedef long (*window_fn)(long x);
extern const window_fn windows[NR], marks[MARKS];

static unsigned long calls[NR], signals, wrong;
static volatile int stop;

static void call(window_fn fn, long x)
{
	if (fn(x) != x + 0x1001)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void on_prof(int sig)
{
	unsigned long n = __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	unsigned int i;

	for (n *= AT_ONCE, i = 0; i < AT_ONCE; i++, n++) {
		call(windows[n % NR], sig + i);
		__atomic_fetch_add(&calls[n % NR], 1, __ATOMIC_RELAXED);
	}
}

/*
 * One a thread, by the clock: a timer of CPU time fires with the kernel's tick, and
 * one of the process would wait for whichever thread it has chosen.
 */
static timer_t profile(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec every = { { 0, 1000000000 / HZ }, { 0, 1000000000 / HZ } };
	timer_t timer;

	ev.sigev_notify_thread_id = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		abort();
	return timer;
}

static void *run(void *arg)
{
	unsigned long mine[NR] = { 0 };
	timer_t timer = profile();
	unsigned int i;
	long x;

	for (x = 0; !stop; x++) {
		for (i = 0; i < NR; i++) {
			call(windows[i], x);
			mine[i]++;
		}
		/* They are more than there are CPUs: none waits for its turn for long. */
		if (x % TURN == 0)
			usleep(REST_US);
	}
	timer_delete(timer);
	for (i = 0; i < NR; i++)
		__atomic_fetch_add(&calls[i], mine[i], __ATOMIC_RELAXED);
	return NULL;
}

static unsigned long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ul + ts.tv_nsec / 1000000;
}

static void report(unsigned long ms)
{
	static const char *const at[] = { "line", "page" }, *const form[] = { "one", "many" };
	unsigned int i;

	for (i = 0; i < NR; i++)
		printf("win_%c_%s_%u_%s %lu\n", 'a' + i / 16, at[i / 2 % 2], i / 4 % 4 + 1,
		       form[i % 2], calls[i]);
	printf("signals %lu\nms %lu\nwrong %lu\n", signals, ms, wrong);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
	unsigned int n = strtoul(argv[1], NULL, 0), i;
	unsigned long begun = 0;
	pthread_t t[64];
	char line[64];
	long k, times;

	sigaction(SIGPROF, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "mark %ld", &times) == 1) {
			for (k = 0; k < times; k++)
				for (i = 0; i < MARKS; i++)
					call(marks[i], k);
			printf("marked\n");
		} else if (!strcmp(line, "go\n")) {
			begun = now_ms();
			for (i = 0; i < n && i < 64; i++)
				pthread_create(&t[i], NULL, run, NULL);
			while (!__atomic_load_n(&signals, __ATOMIC_RELAXED))
				usleep(REST_US);
			printf("running\n");
		} else if (!strcmp(line, "stop\n")) {
			stop = 1;
			for (i = 0; i < n && i < 64; i++)
				pthread_join(t[i], NULL);
			report(now_ms() - begun);
		}
		fflush(stdout);
	}
	return 0;
}
