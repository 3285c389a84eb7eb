/* SPDX-License-Identifier: MIT */
/*
 * A library for programs that are built with -finstrument-functions: each entry and
 * exit of each function becomes a record in the file that $HOOKS names, with the
 * thread and the time.  hooks_value() adds what a function has returned, for
 * wrappers (ld --wrap) to call behind it.
 *
 * The file is mapped and its places are taken one by one, so that records of a
 * process that is ended in the middle are there, too.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HOOK __attribute__((visibility("default"), no_instrument_function))
#define MAX_RECORDS (16u << 20)

enum { ENTER, EXIT, VALUE };

struct record {
	uint64_t time; /* of CLOCK_MONOTONIC, in ns */
	uint64_t what; /* the function's address in its file, or a value */
	uint32_t tid;
	uint32_t kind;
};

HOOK void __cyg_profile_func_enter(void *fn, void *caller);
HOOK void __cyg_profile_func_exit(void *fn, void *caller);
HOOK void hooks_value(uint64_t value);

static struct record *records;
static uint64_t nr, base;
static int fd = -1;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void put(uint64_t time, uint64_t what, uint32_t kind)
{
	static __thread uint32_t tid;
	uint64_t i;

	if (!records)
		return;
	if (!tid)
		tid = (uint32_t)syscall(SYS_gettid);
	i = __atomic_fetch_add(&nr, 1, __ATOMIC_RELAXED);
	if (i < MAX_RECORDS)
		records[i] = (struct record){ time, what, tid, kind };
}

/* The program's place, by one of its functions. */
static uint64_t place(void *fn)
{
	Dl_info info;

	if (!base && dladdr(fn, &info))
		base = (uint64_t)info.dli_fbase;
	return (uint64_t)fn - base;
}

void __cyg_profile_func_enter(void *fn, void *caller)
{
	(void)caller;
	put(now(), place(fn), ENTER);
}

void __cyg_profile_func_exit(void *fn, void *caller)
{
	uint64_t time = now();

	(void)caller;
	put(time, place(fn), EXIT);
}

void hooks_value(uint64_t value)
{
	put(now(), value, VALUE);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("HOOKS");
	void *p;

	fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	if (fd < 0 || ftruncate(fd, (off_t)MAX_RECORDS * (off_t)sizeof(*records)))
		return;
	p = mmap(NULL, (size_t)MAX_RECORDS * sizeof(*records), PROT_READ | PROT_WRITE, MAP_SHARED,
	         fd, 0);
	records = p == MAP_FAILED ? NULL : p;
}

__attribute__((destructor)) static void end(void)
{
	if (records && ftruncate(fd, (off_t)nr * (off_t)sizeof(*records)))
		abort();
}
