/* SPDX-License-Identifier: MIT */
/*
 * Takes libc through all that it does with all signals blocked: threads born,
 * ended, cancelled and detached, programs spawned in every way, forks, signals
 * sent to oneself.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *const argv_true[] = { "true", NULL };

static void *thread_main(void *arg)
{
	pthread_setspecific(*(pthread_key_t *)arg, malloc(10));
	return arg;
}

static void *exiting_main(void *arg)
{
	pthread_exit(arg);
}

static void *waiting_main(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void threads(void)
{
	pthread_attr_t at;
	pthread_key_t key;
#ifdef __GLIBC__
	cpu_set_t cpus;
#endif
	pthread_t t;

	pthread_key_create(&key, free);
	pthread_create(&t, NULL, thread_main, &key);
	pthread_join(t, NULL);
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	pthread_create(&t, &at, exiting_main, NULL);
	usleep(20000);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_JOINABLE);
	pthread_attr_setstacksize(&at, 64 << 20);
#ifdef __GLIBC__ /* musl has no such attribute */
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	pthread_attr_setaffinity_np(&at, sizeof(cpus), &cpus);
#endif
	pthread_create(&t, &at, thread_main, &key);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, waiting_main, NULL);
	usleep(2000);
	/* All threads have to: musl sends each a signal and waits in its handler. */
	if (setuid(getuid()))
		abort();
	pthread_cancel(t);
	pthread_join(t, NULL);
}

static void spawn(const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *at)
{
	pid_t pid;

	if (!posix_spawn(&pid, "/bin/true", fa, at, argv_true, environ))
		waitpid(pid, NULL, 0);
}

/* Actions that fail, a name with a slash, a path with gaps, no path. */
static void spawn_in_every_way(const posix_spawnattr_t *at)
{
	char path[4096], *old = strdup(getenv("PATH"));
	posix_spawn_file_actions_t fa;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addfchdir_np(&fa, open("/", O_RDONLY | O_DIRECTORY));
	spawn(&fa, at);
	posix_spawn_file_actions_adddup2(&fa, 0, 0);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addclose(&fa, 1000);
#ifdef __GLIBC__
	posix_spawn_file_actions_addtcsetpgrp_np(&fa, 0);
#endif
	spawn(&fa, at);
	if (!posix_spawnp(&pid, "/bin/true", NULL, NULL, argv_true, environ))
		waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "/nowhere::/etc:%s", old);
	setenv("PATH", path, 1);
	if (!posix_spawnp(&pid, "true", NULL, NULL, argv_true, environ))
		waitpid(pid, NULL, 0);
	unsetenv("PATH");
	if (!posix_spawnp(&pid, "true", NULL, NULL, argv_true, environ))
		waitpid(pid, NULL, 0);
	setenv("PATH", old, 1);
	free(old);
}

static void spawns(void)
{
	posix_spawn_file_actions_t fa;
	struct sched_param sp = { 0 };
	posix_spawnattr_t at;
	sigset_t set;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 5, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, 5, 7);
	posix_spawn_file_actions_addclose(&fa, 5);
	posix_spawn_file_actions_addchdir_np(&fa, "/");
#ifdef __GLIBC__
	posix_spawn_file_actions_addclosefrom_np(&fa, 8);
#endif
	posix_spawnattr_init(&at);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&at, &set);
	sigaddset(&set, SIGINT);
	posix_spawnattr_setsigdefault(&at, &set);
	posix_spawnattr_setschedparam(&at, &sp);
	posix_spawnattr_setschedpolicy(&at, SCHED_OTHER);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                      POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_RESETIDS |
	                                      POSIX_SPAWN_SETSCHEDULER);
	spawn(&fa, &at);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSCHEDPARAM);
	spawn(NULL, &at);
	spawn_in_every_way(&at);
	if (!posix_spawnp(&pid, "true", NULL, NULL, argv_true, environ))
		waitpid(pid, NULL, 0);
	posix_spawnp(&pid, "no-such-program", NULL, NULL, argv_true, environ);
	if (system("true"))
		abort();
	pclose(popen("true", "r"));
}

static void on_signal(int sig)
{
	(void)sig;
}

static void forks_and_signals(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	pid = vfork();
	if (!pid) {
		execve("/bin/true", argv_true, environ);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	pid = fork();
	if (!pid)
		abort();
	waitpid(pid, NULL, 0);
}

int main(void)
{
	threads();
	spawns();
	forks_and_signals();
	return 0;
}
