/* SPDX-License-Identifier: MIT */
/*
 * spawns: "go N": in each of N rounds calls getenv() once, runs a program that it
 * names by its path, one that is looked for in two folders, one by system() and
 * one by popen(), has a thread born and joined, and reads a byte.  "abort": calls
 * abort() in a child, and for itself with "abort here".  Each says how many of
 * these went wrong, and "done".
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *const argv_true[] = { "true", NULL };
static unsigned long wrong;

static void expect(int good)
{
	wrong += !good;
}

static void expect_success(int err, pid_t pid)
{
	int status = -1;

	expect(!err && waitpid(pid, &status, 0) == pid && !status);
}

static void *thread_main(void *arg)
{
	return arg;
}

static void spawn_by_path(void)
{
	posix_spawn_file_actions_t fa;
	pid_t pid = 0;
	int err;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 5, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, 5, 7);
	posix_spawn_file_actions_addclose(&fa, 5);
	err = posix_spawn(&pid, "/bin/true", &fa, NULL, argv_true, environ);
	expect_success(err, pid);
	posix_spawn_file_actions_destroy(&fa);
}

static void go_round(int null, unsigned long i)
{
	void *back = NULL;
	pid_t pid = 0;
	pthread_t t;
	char byte;
	FILE *f;
	int err;

	expect(getenv("PATH") != NULL);
	spawn_by_path();
	err = posix_spawnp(&pid, "true", NULL, NULL, argv_true, environ);
	expect_success(err, pid);
	expect(!system("exit 0"));
	f = popen("exit 3", "r");
	expect(f && WEXITSTATUS(pclose(f)) == 3);
	expect(!pthread_create(&t, NULL, thread_main, (void *)i));
	expect(!pthread_join(t, &back) && back == (void *)i);
	expect(read(null, &byte, 1) == 0);
}

static void abort_in_a_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		abort();
	expect(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	int null = open("/dev/null", O_RDONLY);
	unsigned long i, n;
	char line[64];

	setenv("PATH", "/nowhere:/bin", 1);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "go %lu", &n) == 1)
			for (i = 0; i < n; i++)
				go_round(null, i);
		else if (!strcmp(line, "abort\n"))
			abort_in_a_child();
		else if (!strcmp(line, "abort here\n"))
			abort();
		printf("wrong %lu\ndone\n", wrong);
		fflush(stdout);
	}
	return 0;
}
