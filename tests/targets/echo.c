/* SPDX-License-Identifier: MIT */
/* Reads lines and says what it got and how: any disturbance shows in the output. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char buf[64];
	ssize_t n;

	do {
		errno = 0;
		n = read(0, buf, sizeof(buf));
		printf("read %zd errno %d: %.*s\n", n, n < 0 ? errno : 0, n > 0 ? (int)n : 0, buf);
		fflush(stdout);
	} while (n > 0);
	return 7;
}
