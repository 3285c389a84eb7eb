/* SPDX-License-Identifier: MIT */
/* Each line that comes in is one call of work(), answered by the page faults that it took. */
#include <stdio.h>
#include <sys/resource.h>

__attribute__((noinline)) int work(int v)
{
	/* Room for a jump. */
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop" : "+r"(v));
	return v + 1;
}

static long faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_minflt;
}

int main(void)
{
	char line[16];
	long before;

	setvbuf(stdout, NULL, _IOLBF, 0);
	work((int)faults());
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		before = faults();
		work(1);
		printf("faults %ld\n", faults() - before);
	}
	return 0;
}
