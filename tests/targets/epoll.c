/* SPDX-License-Identifier: MIT */
/*
 * Blocks in epoll_wait() for ever and says what it got from it: any
 * disturbance shows.  Each line that comes in is one call of work().
 */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

__attribute__((noinline)) long work(long a)
{
	__asm__ volatile("");
	return -a;
}

int main(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(0), n;
	char buf[256];

	epoll_ctl(fd, EPOLL_CTL_ADD, 0, &e);
	printf("ready\n");
	for (;;) {
		fflush(stdout);
		errno = 0;
		n = epoll_wait(fd, &e, 1, -1);
		printf("epoll_wait %d errno %d\n", n, errno);
		if (n == 1) {
			n = read(0, buf, sizeof(buf));
			printf("work %ld\n", work(n));
		}
	}
}
