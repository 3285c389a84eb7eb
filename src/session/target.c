/* SPDX-License-Identifier: MIT */
/*
 * Attaching: the process is stopped, memory is made in it by its own system
 * calls, the agent is written there, the dispositions of five signals are
 * taken, and it runs on.  Whatever fails, all that was done is undone.
 */
#include "session/leave.h"
#include "session/optimize.h"
#include "session/pending.h"
#include "session/target.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "session/proto.h"
#include "session/sites.h"
#include "patch/slots.h"
#include "wire/instance.h"

#define REST_US 1000

/* Sealed at its size: who maps it would die of a target that shrank it. */
#define MEMFD_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define MEMFD_EXEC 0x10 /* MFD_EXEC, which needs Linux 6.3 */
#define MEMFD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * After an execve nothing of ours is there any more, and what lies at our
 * addresses is another program's.  The descriptor of the old memory reads
 * nothing then.
 */
int target_still_ours(struct target *t, struct err *err)
{
	uint64_t magic;

	if (!t->own.magic ||
	    (!inject_read(t->inject, t->own.self, &magic, sizeof(magic)) && magic == UKP_CTL_MAGIC))
		return 0;
	t->dead = true;
	return err_set(err, -ESRCH, "process %d has executed another program", t->pid);
}

int target_hold(struct target *t, struct err *err)
{
	int ret;

	if (t->holds++)
		return 0;
	ret = t->dead ? err_set(err, -ESRCH, "process %d is gone", t->pid)
	              : inject_seize(t->inject, err);
	if (!ret) {
		ret = target_still_ours(t, err);
		if (ret)
			inject_release(t->inject);
	}
	if (ret)
		t->holds--;
	if (ret == -ESRCH)
		t->dead = true;
	return ret;
}

void target_release(struct target *t)
{
	if (!--t->holds)
		inject_release(t->inject);
}

int target_begin(struct target *t, struct err *err)
{
	int ret = 0;

	if (!t->begins++)
		ret = inject_begin(t->inject, err);
	if (ret)
		t->begins--;
	return ret;
}

void target_end(struct target *t)
{
	if (!--t->begins)
		inject_end(t->inject);
}

/* Entries before their number: whoever cures by it reads the number first. */
static void publish_mappings(struct target *t)
{
	if (!t->ctl)
		return;
	memcpy(t->ctl->mapping, t->own.mapping, sizeof(t->own.mapping));
	__atomic_store_n(&t->ctl->nr_mappings, t->own.nr_mappings, __ATOMIC_RELEASE);
}

void target_mapped(struct target *t, struct ukp_mapping *at, uint64_t addr, uint64_t len,
                   enum ukp_map_kind kind, uint32_t arg)
{
	*at = (struct ukp_mapping){ .addr = addr, .len = len, .kind = kind, .arg = arg };
	publish_mappings(t);
}

static uint64_t keep_mapping(struct target *t, long addr, uint64_t len, enum ukp_map_kind kind,
                             uint32_t arg, struct err *err)
{
	if (addr < 0 && addr > -4096) {
		err_set(err, addr, "cannot map memory in process %d: %s", t->pid, strerror(-addr));
		return 0;
	}
	target_mapped(t, &t->own.mapping[t->own.nr_mappings++], addr, len, kind, arg);
	return addr;
}

static bool has_room(struct target *t, struct err *err)
{
	if (t->own.nr_mappings < UKP_NR_MAPPINGS)
		return true;
	err_set(err, -ENOSPC, "no room for another mapping in process %d", t->pid);
	return false;
}

static void drop_last(struct target *t)
{
	t->own.nr_mappings--;
	publish_mappings(t);
}

uint64_t target_map_slots(struct target *t, uint64_t at, uint64_t len, struct err *err)
{
	const uint64_t head[2] = { UKP_SLOTS_MAGIC, t->own.self };
	struct ukp_mapping *m = &t->own.mapping[t->own.nr_mappings];
	long addr;

	if (!has_room(t, err))
		return 0;
	t->own.nr_mappings++;
	target_mapped(t, m, at, len, UKP_MAP_SLOTS, UKP_SLOTS_TO_COME);
	addr = inject_syscall(t->inject, SYS_mmap, at, len, PROT_READ | PROT_EXEC,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (addr > 0 && (uint64_t)addr != at) {
		inject_syscall(t->inject, SYS_munmap, addr, len, 0, 0, 0, 0);
		addr = -EEXIST;
	}
	if (addr < 0 || inject_write(t->inject, at, head, sizeof(head))) {
		drop_last(t);
		err_set(err, addr < 0 ? (int)addr : -EIO, "cannot map memory at %#lx in process %d",
		        at, t->pid);
		return 0;
	}
	target_mapped(t, m, at, len, UKP_MAP_SLOTS, UKP_SLOTS_THERE);
	return at;
}

uint64_t target_map_fd(struct target *t, uint64_t len, int remote, enum ukp_map_kind kind,
                       uint32_t arg, struct err *err)
{
	const long rw = PROT_READ | PROT_WRITE;
	bool room = has_room(t, err);
	struct inject_call v[] = {
		{ SYS_mmap,
		  { 0, len, t->locks ? PROT_NONE : rw, MAP_SHARED | MAP_NORESERVE, remote },
		  0 },
		/* What is there is for others to read, not for a core. */
		{ SYS_madvise | INJECT_OF_LAST, { 0, len, MADV_DONTDUMP }, 0 },
		{ SYS_close, { remote }, 0 },
	};
	int ret = room ? inject_calls(t->inject, v, 3) : inject_calls(t->inject, v + 2, 1);

	if (!room)
		return 0;
	/* See areas.c. */
	if (!ret && t->locks && v[0].ret > 0)
		ret = target_unlock(t, v[0].ret, len);
	return keep_mapping(t, ret ? ret : v[0].ret, len, kind, arg, err);
}

void target_unmap(struct target *t, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < t->own.nr_mappings; i++) {
		struct ukp_mapping *m = &t->own.mapping[i];

		if (m->addr != addr)
			continue;
		inject_syscall(t->inject, SYS_munmap, m->addr, m->len, 0, 0, 0, 0);
		*m = t->own.mapping[--t->own.nr_mappings];
		publish_mappings(t);
		return;
	}
}

unsigned int target_memfd_flags(void)
{
	static unsigned int flags;
	int fd;

	/* Its kernel is ours. */
	if (!flags) {
		fd = memfd_create("ukprobes-try", MEMFD_FLAGS | MEMFD_EXEC);
		flags = fd < 0 && errno == EINVAL ? MEMFD_FLAGS : MEMFD_FLAGS | MEMFD_EXEC;
		if (fd >= 0)
			close(fd);
	}
	return flags;
}

int target_memfd_open(struct target *t, long remote, uint64_t size, struct err *err)
{
	char path[64];
	int fd, e;

	if (remote < 0)
		return err_set(err, remote, "cannot make shared memory in process %d: %s", t->pid,
		               strerror(-remote));
	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", t->pid, remote);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, MEMFD_SEALS))
		return fd;
	e = -errno;
	if (fd >= 0)
		close(fd);
	return err_set(err, e, "cannot share memory with process %d: %s", t->pid, strerror(-e));
}

int target_memfd(struct target *t, const char *name, uint64_t size, long *remote, struct err *err)
{
	uint64_t str = inject_scratch(t->inject, strlen(name) + 1);
	int fd;

	if (!str || inject_write(t->inject, str, name, strlen(name) + 1))
		return err_set(err, -EIO, "cannot write to process %d", t->pid);
	*remote =
		inject_syscall(t->inject, SYS_memfd_create, str, target_memfd_flags(), 0, 0, 0, 0);
	fd = target_memfd_open(t, *remote, size, err);
	if (fd < 0 && *remote >= 0)
		inject_syscall(t->inject, SYS_close, *remote, 0, 0, 0, 0, 0);
	return fd;
}

uint32_t target_alloc(struct target *t, size_t size)
{
	uint32_t off = t->own.next_free, again;

	size = (size + HEAP_UNIT - 1) & ~(size_t)(HEAP_UNIT - 1);
	again = heap_take(&t->heap, size);
	if (again) {
		memset(target_at(t, again), 0, size);
		return again;
	}
	if (off + size > UKP_CTL_SIZE)
		return 0;
	t->own.next_free = off + size;
	t->ctl->next_free = off + size;
	return off;
}

void target_populate(struct target *t, size_t len)
{
	uint32_t from = (t->own.next_free + 4095) & ~4095u;

	if (len > 8 * 4096 && len < UKP_CTL_SIZE - from)
		madvise((char *)t->ctl + from, len,
		        MADV_POPULATE_WRITE); /* or not: then by fault */
}

void *target_at(struct target *t, uint32_t off)
{
	return (char *)t->ctl + off;
}

/* An agent whose broker is gone is taken out first. */
static int cure_orphan(struct target *t, struct err *err)
{
	int ret;

	if (!orphan_seen(t->sym, t->pid))
		return 0;
	ret = orphan_is_served(t->sym, t->pid, err);
	if (!ret)
		ret = target_hold(t, err);
	if (ret)
		return ret;
	ret = orphan_leave(t->inject, t->sym, t->holds == 1, err);
	target_release(t);
	return ret;
}

/* What we have planted for ourselves goes last, while nothing runs. */
static int leave(struct target *t, struct err *err)
{
	bulk_restore_own(t);
	return leave_target(t->inject, t->sym, &t->own, t->ctl, t->own.next_free, t->holds == 1,
	                    err);
}

/* The target stands still for this alone, unless it does already. */
static uint64_t map_slots(void *arg, uint64_t hint, uint64_t len, struct err *err)
{
	struct target *t = arg;
	uint64_t addr = 0;

	if (target_hold(t, err))
		return 0;
	if (!target_begin(t, err)) {
		addr = target_map_slots(t, hint, len, err);
		target_end(t);
	}
	target_release(t);
	return addr;
}

static void undo(struct target *t)
{
	struct err ignored = ERR_INIT;

	if (!t->ctl)
		return;
	t->own.magic = UKP_CTL_MAGIC;
	memcpy(t->ctl, &t->own, sizeof(t->own));
	leave(t, &ignored);
}

/*
 * One stop of the target, with system calls in it; on failure nothing remains.
 * What was computed before has used up our share of the CPU: on a busy machine
 * we would be preempted in the middle of it, and the target with us.
 */
static int step(struct target *t, int (*fn)(struct target *t, struct err *err), struct err *err)
{
	int ret;

	if (!t->holds)
		usleep(REST_US);
	ret = target_hold(t, err);
	if (ret)
		return ret;
	/* One that is launched can't run on: its mask stays what it is. */
	if (fn == target_settle && t->holds == 1)
		ret = target_await_open(t, err);
	/* What a killed broker has begun may come to be only now. */
	if (fn == target_bring && inject_owes(t->inject))
		ret = orphan_leave(t->inject, t->sym, t->holds == 1, err);
	if (!ret)
		ret = target_begin(t, err);
	if (!ret) {
		ret = fn(t, err);
		target_end(t);
	}
	if (ret)
		undo(t);
	target_release(t);
	return ret;
}

/* Some short stops rather than a long one; what has to be filled is filled in between. */
static int enter(struct target *t, struct err *err)
{
	struct err ignored = ERR_INIT;
	int ret = step(t, target_bring, err);

	if (ret)
		return ret;
	ret = target_fill(t, err);
	if (!ret)
		return step(t, target_settle, err);
	if (!target_hold(t, &ignored)) {
		undo(t);
		target_release(t);
	}
	return ret;
}

int target_attach(struct target **ret_t, pid_t pid, struct inject *held, struct err *err)
{
	struct target *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->pid = pid;
	t->ctl_fd = -1;
	t->inject = held;
	t->holds = held ? 1 : 0; /* a launched one is held until it is let go */
	/* First what can be told without touching it: that has the best sentences. */
	ret = held ? 0 : inject_preflight(pid, err);
	if (!ret && !held)
		ret = inject_open(&t->inject, pid, err);
	if (!ret)
		ret = sym_open(&t->sym, pid, err);
	if (!ret)
		ret = slots_open(&t->slots, t->sym, map_slots, t);
	if (!ret)
		ret = cure_orphan(t, err);
	if (!ret)
		ret = target_prepare(t, err);
	if (!ret)
		ret = target_check_shared(t, err);
	if (!ret)
		ret = enter(t, err);
	/* Without it, breakpoints stay: slower, not wrong. */
	if (!ret)
		optimize_open(t);
	if (!ret && !sym_refresh(t->sym, err))
		family_find(&t->family, t->sym, t->own.self);
	/* A start waits for the jumps of our own probes: what they need is made meanwhile. */
	if (!ret)
		optimize_kick(t);
	if (ret) {
		if (held)
			target_release(t);
		target_free(t);
		return ret;
	}
	*ret_t = t;
	return 0;
}

int target_detach(struct target *t, struct err *err)
{
	int ret;

	ret = optimize_off(t, err);
	if (ret)
		return ret;
	target_refresh(t, err);
	bulk_restore(t);
	ret = target_hold(t, err);
	if (ret)
		return ret == -ESRCH ? 0 : ret;
	/*
	 * Our own jumps go in one stop with the last breakpoints, so that nobody meets one with
	 * its signals blocked, and with our handlers, so that nobody finds these.
	 */
	ret = leave_settle(t, err);
	if (!ret)
		ret = optimize_leave(t, err);
	if (!ret)
		ret = leave(t, err);
	target_release(t);
	return ret == -ESRCH ? 0 : ret;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	optimize_close(t);
	pending_close(t);
	probe_free_all(t, t->internal);
	sites_free(t);
	heap_close(&t->heap);
	slots_close(t->slots);
	free(t->image);
	if (t->ctl)
		munmap(t->ctl, UKP_CTL_SIZE);
	if (t->ctl_fd >= 0)
		close(t->ctl_fd);
	if (t->inject)
		inject_close(t->inject);
	sym_close(t->sym);
	free(t);
}
