/* SPDX-License-Identifier: MIT */
/* Ends with what main() found: 40 + the number of arguments, or 1 if SIGTRAP isn't as started. */
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct sigaction sa;
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	sigaction(SIGTRAP, NULL, &sa);
	if (argc > 1 && !strcmp(argv[1], "ignored") && sa.sa_handler != SIG_IGN)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "blocked") && !sigismember(&set, SIGTRAP))
		return 1;
	return 40 + argc;
}
