// SPDX-License-Identifier: MIT
/*
 * Threads that are cancelled while they wait in a system call, several frames
 * deep: how many of the destructors on the way ran.  One round for each line.
 */
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <unistd.h>

#define DEPTH 5

static int fds[2], ran;

struct counts {
	~counts()
	{
		ran++;
	}
};

static __attribute__((noinline)) void wait_in(int how, int depth)
{
	counts c;
	char byte;

	if (depth)
		return wait_in(how, depth - 1);
	if (how == 0)
		(void)!read(fds[0], &byte, 1);
	else if (how == 1)
		poll(nullptr, 0, -1);
	else
		pause();
}

static void *waiter(void *how)
{
	wait_in((int)(long)how, DEPTH - 1);
	return nullptr;
}

/* In its system call, by what the kernel says of it. */
static bool is_waiting()
{
	DIR *d = opendir("/proc/self/task");
	bool waits = false;

	while (dirent *e = readdir(d)) {
		char line[256] = "";
		std::string path = std::string("/proc/self/task/") + e->d_name + "/syscall";
		FILE *f;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		f = fopen(path.c_str(), "r");
		if (f && fgets(line, sizeof(line), f))
			waits |= line[0] >= '0' && line[0] <= '9';
		if (f)
			fclose(f);
	}
	closedir(d);
	return waits;
}

int main()
{
	char line[64];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (pipe(fds))
		return 1;
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		for (long how = 0; how < 3; how++) {
			pthread_t t;
			void *ret;

			ran = 0;
			pthread_create(&t, nullptr, waiter, (void *)how);
			while (!is_waiting())
				usleep(1000);
			pthread_cancel(t);
			pthread_join(t, &ret);
			printf("%ld %s %d\n", how, ret == PTHREAD_CANCELED ? "cancelled" : "not", ran);
		}
		puts("done");
	}
}
