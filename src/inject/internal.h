/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of this zone.
 *
 * A thread of the target is here in one of these states:
 *
 *	RUNNING		seized by us, an interrupt is pending, no stop seen yet
 *	STOPPED		in an event stop of PTRACE_INTERRUPT (or a group stop)
 *	DYING		killed under our hands, not reaped yet
 *	GONE		nothing of it is left that we could or must wait for
 *
 * Only event stops are kept.  A signal-delivery stop that comes first is
 * answered with the signal itself: the kernel then builds the handler's frame
 * (or ignores, stops, kills) and runs into the pending interrupt before the
 * first instruction in user mode.  So no signal is ever carried in our memory,
 * and the registers of a held thread are always those with which the kernel's
 * own restart of system calls works.
 */
#ifndef UKP_INJECT_INTERNAL_H
#define UKP_INJECT_INTERNAL_H

#include "inject/arch.h"
#include "inject/eintr.h"
#include "inject/inject.h"

#include <signal.h>

enum thread_state { THREAD_RUNNING, THREAD_STOPPED, THREAD_DYING, THREAD_GONE };

struct thread {
	struct inject_thread pub;
	enum thread_state state;
	bool known;   /* pub is filled for this stop */
	bool in_call; /* it stands at the entry of a system call, and makes none for us */
};

/* A piece of the target's stack that is lent to arguments. */
struct scratch {
	uint64_t addr;
	size_t len;
	void *saved; /* NULL: mapped for us in the target, to be unmapped */
};

#define XSTATE_MAX 32768
#define SCRATCH_MAX 16

struct gadgets {
	struct arch_gadget call, back; /* a call, and behind it the way back */
};

struct sud { /* struct ptrace_sud_config of Linux 6.4 */
	uint64_t mode, selector, offset, len;
};

struct remote {
	bool active;
	bool moved;   /* it ran: no longer in the event stop in which it was found */
	bool blocked; /* signals are, for our calls */
	int signal;   /* that ends the runner; 0: none can */
	bool runs;    /* by the runner */
	bool caught; /* at a signal of our own making, from which it can go on as from an event stop
	              */
	bool dead;
	size_t worker;
	struct user_regs_struct saved;
	uint64_t sigblk;
	uint8_t xstate[XSTATE_MAX];
	size_t xstate_len;
	uint64_t rseq_at, rseq_cs; /* the word that names a critical section */
	uint64_t abort;            /* where the thread stands in one: how it is left; 0: in none */
	struct sud sud;
	uint64_t back; /* the way back on the stack: at the bottom, so that signal handlers
	                  and scratch don't come upon each other */
	size_t back_len;
	uint64_t low;   /* scratch is below this */
	uint64_t table; /* scratch for inject_calls() */
	size_t table_max;
	struct scratch scratch[SCRATCH_MAX];
	size_t nr_scratch;
};

struct inject {
	pid_t pid;
	int mem_fd;
	bool own_child;    /* its exit status is the caller's to reap */
	bool other_pid_ns; /* tids there are not those here */
	bool held;
	unsigned int waits; /* nested wait_start(): SIGCHLD is blocked */
	sigset_t mask;      /* the caller's own */
	bool owed;
	bool first; /* by its nice value, while that is not the caller's own */
	int nice;
	bool hurries;
	struct pause *beside;                     /* made meanwhile; NULL: none */
	int64_t stopped_at, stopped_for, longest; /* us */
	struct gadgets gadget;
	uint64_t runner;  /* 0: none */
	uint64_t journal; /* for tables of up to so many calls */
	size_t journal_max;
	int maps_fd;   /* -1: not open; region.c */
	bool no_query; /* the kernel can't be asked for one mapping */
	struct region {
		uint64_t start, end;
	} * regions; /* of this hold */
	size_t nr_regions;
	struct thread *threads;
	size_t nr, cap;
	size_t nr_held; /* of a hold: the first in the list */
	struct remote remote;
};

/* proc.c */
int proc_read(const char *path, char *buf, size_t size); /* length or -errno; ends in NUL */
int proc_status(pid_t pid, pid_t tid, char *buf, size_t size);
const char *proc_field(const char *status, const char *name); /* after "Name:" and blanks */
unsigned long proc_number(const char *status, const char *name, int base);
char proc_state(pid_t pid, pid_t tid); /* R S D T t Z X; 0: no such thread */
unsigned long proc_flags(pid_t tid);   /* the kernel's PF_*; 0: no such thread */
void proc_comm(pid_t pid, pid_t tid, char buf[32]);
pid_t proc_live_tid(pid_t pid); /* the leader unless it is a zombie; 0: none */
/*
 * Calls fn with each thread until it returns other than 0, which is the result.
 * -ESRCH: no such process.  *more, if given: some came while it was read.
 */
int proc_each_task(pid_t pid, int (*fn)(pid_t tid, void *arg), void *arg, bool *more);
int64_t clock_us(void);

/* wait.c */
enum stop_kind { STOP_NONE, STOP_EVENT, STOP_SIGNAL, STOP_SYSCALL, STOP_EXEC, STOP_GONE };
struct stop {
	enum stop_kind kind;
	int sig;    /* STOP_SIGNAL: which */
	bool group; /* STOP_EVENT: the process is stopped by a signal */
};
void wait_peek(const struct inject *t, pid_t tid, struct stop *stop);
int wait_stop(struct inject *t, pid_t tid, int64_t deadline, struct stop *stop);
void wait_start(struct inject *t);
bool wait_nap(struct inject *t);
void wait_finish(struct inject *t);
bool wait_dead(const struct inject *t, pid_t tid);

/* seize.c */
int seize_rights(struct inject *t, pid_t tid, int error, struct err *err);
int thread_add(struct inject *t, pid_t tid);       /* already seized */
int seize_rest(struct inject *t, struct err *err); /* all who aren't in the list yet */
/* One of the held was let run and has been interrupted: until it stands, and is read. */
int seize_again(struct inject *t, struct thread *th);
void seize_reap(struct inject *t);
size_t seize_count(const struct inject *t); /* stopped threads: the first in the list */

/* hurry.c */
void hurry(struct inject *t); /* the calling thread, until relax() */
void relax(struct inject *t);

/* back.c */
void back_update(struct inject *t);       /* the thread is to go on elsewhere, or otherwise */
uint64_t back_on_stack(struct inject *t); /* sp of a call that leads back; 0: none does */

/* hooks.c */
void hooks_save(struct inject *t, pid_t tid);
void hooks_off(struct inject *t, pid_t tid);
void hooks_restore_early(struct inject *t); /* before its registers */
void hooks_restore_late(struct inject *t, pid_t tid);

/* scratch.c */
uint64_t scratch_on_stack(struct inject *t, size_t len);
void scratch_unmap(struct inject *t);
void scratch_return(struct inject *t);

/* mem.c */
int mem_open(struct inject *t, struct err *err);

/* gadget.c */
int gadget_find(struct inject *t, struct err *err);

/* region.c */
void region_forget(struct inject *t);

/* preflight.c */
enum exe_kind { EXE_UNKNOWN, EXE_OURS, EXE_32_BIT, EXE_OTHER_CPU };
enum exe_kind preflight_exe(const char *path);

#endif
