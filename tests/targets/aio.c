/* SPDX-License-Identifier: MIT */
/* aio: "go" reads four bytes by a thread of libc's, which blocks all signals. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

int main(void)
{
	char line[16], buf[4];
	struct aiocb cb = { .aio_buf = buf, .aio_nbytes = sizeof(buf) };

	setvbuf(stdout, NULL, _IOLBF, 0);
	cb.aio_fildes = open("/proc/self/exe", O_RDONLY);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && !strcmp(line, "go\n")) {
		const struct aiocb *list[] = { &cb };

		work();
		if (aio_read(&cb))
			return 1;
		while (aio_error(&cb) == EINPROGRESS)
			aio_suspend(list, 1, NULL);
		printf("read %zd\n", aio_return(&cb));
	}
	return 0;
}
