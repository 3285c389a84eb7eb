/* SPDX-License-Identifier: MIT */
/*
 * timers [early]: has a timer with SIGEV_THREAD from the start, or could have one.
 * "go" lets it fire once; its thread calls work() and says "fired".
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static timer_t timer;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void fired(union sigval v)
{
	work();
	puts("fired");
}

static int make(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = fired };

	return timer_create(CLOCK_MONOTONIC, &ev, &timer);
}

int main(int argc, char **argv)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && make())
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && !strcmp(line, "go\n"))
		if ((argc <= 1 && make()) || timer_settime(timer, 0, &soon, NULL))
			return 1;
	return 0;
}
