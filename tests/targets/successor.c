/* SPDX-License-Identifier: MIT */
/*
 * Executes itself anew: with an argument always, after some calls of work(), else
 * at "exec".
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) int work(int v)
{
	__asm__ volatile("" : "+r"(v));
	return v + 1;
}

int main(int argc, char **argv)
{
	struct timespec rest = { 0, 1000000 };
	char line[16] = "exec\n";

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	if (argc > 1)
		for (int i = 0; i < 3; i++) {
			work(i);
			nanosleep(&rest, NULL);
		}
	else
		while (fgets(line, sizeof(line), stdin) && strcmp(line, "exec\n"))
			work(1);
	if (strcmp(line, "exec\n"))
		return 0;
	execv("/proc/self/exe", argv);
	return 1;
}
