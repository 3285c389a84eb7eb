/* SPDX-License-Identifier: MIT */
/*
 * A system call that waits in generated code, a slot or a detour, and a signal
 * that comes meanwhile: restarted or not, the program sees its result, its own
 * pc in rcx and its flags in r11, and by the map the handler sees where it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "plan/detour.h"

/* xor %eax,%eax; nop; syscall: read(), with the rest of a window before it. */
static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x0f, 0x05 };
#define CALL 3 /* where the call is */

static uint8_t *text; /* the code, then ret */
static uint8_t *slot, *buf;
static struct ukp_site site;
static struct plan_detour detour;

static struct {
	int fd[2];
	volatile pid_t tid;
	char got;
	/* as they are behind the call */
	uint64_t ax, cx, r11;
} reader;

static struct {
	volatile unsigned int nr;
	uint64_t pc, sp;
} handled;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig, (void)info;
	handled.pc = (uint64_t)r[REG_RIP];
	handled.sp = (uint64_t)r[REG_RSP];
	handled.nr++;
}

static void *run(void *entry)
{
	register uint64_t cx __asm__("rcx"), r11 __asm__("r11");
	uint64_t ax;

	reader.tid = (pid_t)syscall(SYS_gettid);
	__asm__ volatile("xor %%eax, %%eax; call *%[entry]"
	                 : "=&a"(ax), "=r"(cx), "=r"(r11)
	                 : "D"(reader.fd[0]), "S"(&reader.got), "d"(1ul), [entry] "r"(entry)
	                 : "memory", "cc");
	reader.ax = ax;
	reader.cx = cx;
	reader.r11 = r11;
	return NULL;
}

/* Waits in read(), by what the kernel says of it. */
static bool waits(void)
{
	char path[64], line[8] = "";
	FILE *f;

	if (!reader.tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", reader.tid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return line[0] == '0' && line[1] == ' ';
}

static void make_code(void)
{
	struct plan_request req = { code + CALL, sizeof(code) - CALL, 0, 0, 0 };
	static struct plan_window w = {
		.nr = 3, .len = 5, .covered = 5, .insn = { { 0, 2 }, { 2, 1 }, { 3, 2 } }
	};
	static const uint8_t engine[] = { 0x31, 0xc0, 0xc3 };
	struct plan_detour_request dr = { .code = code, .window = &w, .probes = 5 };

	text = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
	            -1, 0); /* a test only */
	assert_true(text != MAP_FAILED);
	slot = text + 4096;
	buf = text + 2 * 4096;
	memcpy(text, code, sizeof(code));
	text[sizeof(code)] = 0xc3;
	memcpy(text + 64, engine, sizeof(engine));
	req.addr = (uint64_t)text + CALL;
	req.slot = (uint64_t)slot;
	assert_int_equal(plan_copy(&req, slot, &site), PLAN_OK);
	dr.addr = (uint64_t)text;
	dr.buf = (uint64_t)buf;
	dr.engine = (uint64_t)text + 64;
	dr.form = (struct plan_form){ PLAN_SAVE_CALL, true, false, false };
	assert_int_equal(plan_detour(&dr, &detour), PLAN_OK);
	memcpy(buf, detour.code, detour.d.size);
}

/* Where the handler was, in the original's terms. */
static uint64_t original(bool in_detour)
{
	struct ukp_detour_frame d = { 0 };
	struct ukp_site_frame s = { 0 };

	if (in_detour) {
		assert_true(ukp_detour_frame(&detour.d, &detour.shape, handled.pc, handled.sp, &d));
		assert_int_equal(d.sp, handled.sp);
		return d.pc;
	}
	assert_true(ukp_site_frame(&site, handled.pc, handled.sp, &s));
	assert_int_equal(s.sp, handled.sp);
	return s.pc;
}

static void interrupt(void *entry, bool in_detour, int flags)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };
	pthread_t t;

	assert_int_equal(pipe(reader.fd), 0);
	sigaction(SIGUSR1, &sa, NULL);
	handled.nr = 0;
	reader.tid = 0;
	reader.got = 0;
	assert_int_equal(pthread_create(&t, NULL, run, entry), 0);
	while (!waits())
		usleep(1000);
	pthread_kill(t, SIGUSR1);
	while (!handled.nr)
		usleep(1000);
	if (flags) {
		/* the kernel goes back to the call, in whatever code it is */
		assert_int_equal(original(in_detour), (uint64_t)text + CALL);
		assert_int_equal(write(reader.fd[1], "x", 1), 1);
	} else {
		assert_int_equal(original(in_detour), (uint64_t)text + sizeof(code));
	}
	pthread_join(t, NULL);
	assert_int_equal(reader.ax, flags ? 1 : (uint64_t)-EINTR);
	assert_int_equal(reader.got, flags ? 'x' : 0);
	assert_int_equal(reader.cx, (uint64_t)text + sizeof(code));
	/* the flags, as xor left them */
	assert_int_equal(reader.r11 & 0xcd5, 0x44);
	assert_int_equal(handled.nr, 1);
	close(reader.fd[0]);
	close(reader.fd[1]);
}

static void a_call_that_is_interrupted_in_a_slot_returns(void **state)
{
	(void)state;
	interrupt(slot, false, 0);
}

static void a_call_that_is_restarted_in_a_slot_goes_on(void **state)
{
	(void)state;
	interrupt(slot, false, SA_RESTART);
}

static void a_call_that_is_interrupted_in_a_detour_returns(void **state)
{
	(void)state;
	interrupt(buf, true, 0);
}

static void a_call_that_is_restarted_in_a_detour_goes_on(void **state)
{
	(void)state;
	interrupt(buf, true, SA_RESTART);
}

static int setup(void **state)
{
	(void)state;
	make_code();
	alarm(900);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_is_interrupted_in_a_slot_returns),
		cmocka_unit_test(a_call_that_is_restarted_in_a_slot_goes_on),
		cmocka_unit_test(a_call_that_is_interrupted_in_a_detour_returns),
		cmocka_unit_test(a_call_that_is_restarted_in_a_detour_goes_on),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
