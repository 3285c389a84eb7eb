/* SPDX-License-Identifier: MIT */
/*
 * Two things of a thread that the kernel looks at on its way to and from user
 * mode: the rseq critical section, which it forgets when it finds the thread
 * elsewhere, and the system calls that it hands to the program (Wine).
 */
#include "inject/internal.h"

#include <string.h>
#include <sys/ptrace.h>

#define GET_SYSCALL_USER_DISPATCH 0x4211 /* Linux 6.4 */
#define SET_SYSCALL_USER_DISPATCH 0x4210

struct rseq_section { /* struct rseq_cs */
	uint32_t version, flags;
	uint64_t start, len, abort;
};

/* A thread that was stopped in a section goes on at its abort: by the kernel, or without it. */
static void save_section(struct inject *t, pid_t tid)
{
	struct __ptrace_rseq_configuration rseq = { 0 };
	struct remote *r = &t->remote;
	struct rseq_section cs;

	r->rseq_cs = r->abort = 0;
	if (arch_syscall_nr(&r->saved) >= 0 ||
	    ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) <= 0 ||
	    !rseq.rseq_abi_pointer)
		return;
	r->rseq_at = rseq.rseq_abi_pointer + 8; /* struct rseq: rseq_cs */
	if (inject_read(t, r->rseq_at, &r->rseq_cs, sizeof(r->rseq_cs)))
		r->rseq_cs = 0;
	if (r->rseq_cs && !inject_read(t, r->rseq_cs, &cs, sizeof(cs)) &&
	    arch_pc(&r->saved) - cs.start < cs.len)
		r->abort = cs.abort;
}

void hooks_save(struct inject *t, pid_t tid)
{
	struct remote *r = &t->remote;

	save_section(t, tid);
	if (ptrace(GET_SYSCALL_USER_DISPATCH, tid, sizeof(r->sud), &r->sud))
		memset(&r->sud, 0, sizeof(r->sud));
}

void hooks_off(struct inject *t, pid_t tid)
{
	struct sud off = { 0 };

	if (t->remote.sud.mode)
		ptrace(SET_SYSCALL_USER_DISPATCH, tid, sizeof(off), &off);
}

/* While the thread still is elsewhere: never without its section where it was found. */
void hooks_restore_early(struct inject *t)
{
	struct remote *r = &t->remote;

	if (r->rseq_cs)
		inject_write(t, r->rseq_at, &r->rseq_cs, sizeof(r->rseq_cs));
}

/* The way back makes calls, so not before it is done with. */
void hooks_restore_late(struct inject *t, pid_t tid)
{
	if (t->remote.sud.mode)
		ptrace(SET_SYSCALL_USER_DISPATCH, tid, sizeof(t->remote.sud), &t->remote.sud);
}
