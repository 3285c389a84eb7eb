/* SPDX-License-Identifier: MIT */
/*
 * Text of /proc of any content: a target chooses its name, its groups, its
 * mappings and what other namespaces show of it, and some kernels write more
 * lines than others.
 *
 * What opens a file below /proc gets a piece of the input, pieces end at a byte
 * 0xff; after some of them there are no more files.  The first byte chooses who
 * reads.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/launch.c"
#include "inject/seize.c"
#include "session/client.h"
#include "session/hazard.c"
#include "sym/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOBODY 0x3fffffff /* a pid above the kernel's highest */
#define FILES 64          /* opened of one input */

static struct {
	const uint8_t *p, *end;
	unsigned int left;
} in;

/* --- what the linker puts in the place of libc's (build.mk) ------------------- */

int __real_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
ssize_t __real_readlink(const char *path, char *buf, size_t len);
int __real_usleep(useconds_t us);
int __wrap_open(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
ssize_t __wrap_readlink(const char *path, char *buf, size_t len);
int __wrap_usleep(useconds_t us);

static bool is_ours(const char *path)
{
	return in.p && !strncmp(path, "/proc/", 6);
}

/* The next piece; false: there are no more. */
static bool next(const uint8_t **at, size_t *len)
{
	const uint8_t *stop;

	if (!in.left)
		return false;
	in.left--;
	*at = in.p;
	stop = memchr(in.p, 0xff, (size_t)(in.end - in.p));
	*len = (size_t)((stop ? stop : in.end) - in.p);
	/* The last one is what all others read, too. */
	if (stop)
		in.p = stop + 1;
	return true;
}

int __wrap_open(const char *path, int flags, ...)
{
	const uint8_t *at;
	size_t len;
	va_list ap;
	mode_t mode;
	int fd;

	if (is_ours(path)) {
		errno = flags & O_RDWR ? EACCES : ENOENT;
		if (flags & O_RDWR || !next(&at, &len))
			return -1;
		fd = memfd_create("proc", MFD_CLOEXEC);
		if (fd < 0 || write(fd, at, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET))
			abort();
		return fd;
	}
	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	return __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	int fd;

	if (!is_ours(path))
		return __real_fopen(path, mode);
	fd = __wrap_open(path, O_RDONLY);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

ssize_t __wrap_readlink(const char *path, char *buf, size_t len)
{
	const uint8_t *at;
	size_t n;

	if (!is_ours(path))
		return __real_readlink(path, buf, len);
	if (!next(&at, &n))
		return -1;
	n = n < len ? n : len;
	memcpy(buf, at, n);
	return (ssize_t)n;
}

int __wrap_usleep(useconds_t us)
{
	return in.p ? 0 : __real_usleep(us);
}

/* --- readers ------------------------------------------------------------------ */

static void read_fields(void)
{
	char status[256], comm[32];
	const char *p;

	if (proc_status(NOBODY, NOBODY, status, sizeof(status)) < 0)
		return;
	p = proc_field(status, "Tgid");
	if (p && (p < status || p > status + strlen(status)))
		abort();
	proc_number(status, "SigIgn", 16);
	proc_number(status, "", 10);
	proc_state(NOBODY, NOBODY);
	proc_flags(NOBODY);
	proc_comm(NOBODY, NOBODY, comm);
	if (strlen(comm) >= sizeof(comm))
		abort();
	proc_live_tid(NOBODY);
}

static void read_of_thread(void)
{
	struct inject t = { .pid = NOBODY, .other_pid_ns = true };
	struct err err = ERR_INIT;

	read_ns_tid(&t, NOBODY);
	timed_out(&t, NOBODY, &err);
	if (strlen(err.text) >= sizeof(err.text))
		abort();
	entry_point(NOBODY);
}

static void read_mappings(void)
{
	struct thread one = { .pub.tid = NOBODY };
	struct inject t = { .pid = NOBODY,
		            .mem_fd = -1,
		            .maps_fd = -1,
		            .no_query = true,
		            .held = true,
		            .threads = &one,
		            .nr = 1 };

	for (uint64_t at = 0; at < 0x10000; at += 0xffd)
		inject_region_end(&t, at);
	inject_region_end(&t, UINT64_MAX);
	region_forget(&t);
	gadget_find(&t, NULL);
}

static void read_process(void)
{
	struct sym_proc *p = calloc(1, sizeof(*p));

	proto_start_time(NOBODY);
	proto_program(NOBODY);
	has_helper(NOBODY);
	if (!p)
		abort();
	p->pid = NOBODY;
	maps_read(p, NULL);
	sym_close(p);
}

/* The folder is our own, what is in it isn't. */
static void read_names(void)
{
	struct threads *t;
	pid_t tid;

	if (threads_open(&t, getpid()))
		abort();
	for (uint32_t i = 0; i < 3; i++)
		if (strlen(threads_name(t, i, &tid)) > 16)
			abort();
	threads_close(t);
}

static void read_perfmap(void)
{
	char line[256];
	uint64_t addr, size;

	memset(line, 0, sizeof(line));
	memcpy(line, in.p,
	       (size_t)(in.end - in.p) < sizeof(line) - 1 ? (size_t)(in.end - in.p)
	                                                  : sizeof(line) - 1);
	if (sym_perfmap_line(line, "f", &addr, &size) && (!size || addr + size < addr))
		abort();
}

static void judge(void)
{
	struct err err = ERR_INIT;

	if (!inject_preflight(NOBODY, &err) || !*err.text)
		abort();
}

static void doctor(void)
{
	FILE *f = fmemopen(NULL, 4096, "w");
	const char *why;

	if (!f)
		abort();
	ukp_doctor(NOBODY, f, &why);
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const reader[])(void) = {
		read_fields, read_of_thread, read_mappings, read_process,
		read_names,  read_perfmap,   judge,         doctor,
	};

	if (!size)
		return 0;
	in.p = data + 1;
	in.end = data + size;
	in.left = FILES;
	reader[data[0] % (sizeof(reader) / sizeof(*reader))]();
	in.p = NULL;
	return 0;
}
