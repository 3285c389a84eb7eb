/* SPDX-License-Identifier: MIT */
/*
 * Holding a foreign process and acting in it, by ptrace and /proc/PID/mem.
 * Nothing here knows what a probe is.
 *
 *	inject_seize()          all threads stopped
 *	inject_syscall() ...    on one of them, its state put back afterwards
 *	inject_release()        as if nothing had been; no tracer stays
 *
 * Blocking system calls of the target go on: the kernel restarts most; the
 * ones that would return EINTR (epoll_wait and kin) are made to restart too,
 * unless a handler of the program's runs first: then they return EINTR, as
 * they would have done without us.
 *
 * A struct inject belongs to the thread that made it (ptrace's rule).  While
 * it holds, that thread has SIGCHLD blocked; a handler or signalfd of the
 * caller's sees one afterwards.
 */
#ifndef UKP_INJECT_INJECT_H
#define UKP_INJECT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"

struct inject;
struct pause;

struct inject_thread {
	pid_t tid;                    /* in our pid namespace */
	pid_t ns_tid;                 /* in the target's innermost one */
	struct user_regs_struct regs; /* at the stop; changed by inject_set_regs() */
	uint64_t sigblk;              /* blocked signals, bit n-1 */
	/*
	 * regs.rax was changed from -EINTR to the kernel's "restart if no
	 * handler runs".  Whether for this or by the kernel itself: a thread
	 * with orig_rax >= 0 and rax in -516..-512 executes the syscall
	 * instruction at rip - 2 next.
	 */
	bool syscall_rewound;
};

/* Opens /proc/PID/mem and finds a syscall instruction (vdso first). No stop yet. */
int inject_open(struct inject **ret, pid_t pid, struct err *err);
void inject_close(struct inject *t); /* releases if held */
/*
 * The pause of a thread that works beside the caller, made while the target is held (not
 * where a launched program has not begun); NULL: there is none any more.
 */
void inject_beside(struct inject *t, struct pause *pause);
pid_t inject_pid(const struct inject *t);
pid_t inject_ns_pid(const struct inject *t);   /* in the target's innermost pid namespace */
pid_t inject_live_tid(const struct inject *t); /* the leader unless it has ended; 0: none */

/*
 * Stop every thread, those born meanwhile too.  -EBUSY: another tracer (named
 * in err); -EPERM; -ESRCH; -ETIMEDOUT: a thread did not stop in a second (all
 * others are released again; see inject_settle()).
 */
int inject_seize(struct inject *t, struct err *err);
/*
 * After -ETIMEDOUT: a thread that fell into an uninterruptible sleep while it
 * was being seized can't be let go before it wakes up, and would stand still
 * then.  Returns how many there are still; call it now and then until 0.  The
 * end of the calling thread lets them go too.
 */
size_t inject_settle(struct inject *t);
/* Let all run on, detached.  Signals that came meanwhile are delivered. */
void inject_release(struct inject *t);
bool inject_held(const struct inject *t);
/* How long the last hold kept the target standing, first interrupt to last detach. */
uint64_t inject_stop_us(const struct inject *t);
/* The longest hold since this was asked last. */
uint64_t inject_longest_us(struct inject *t);

/* The threads while held. */
size_t inject_nr_threads(const struct inject *t);
struct inject_thread *inject_thread_at(struct inject *t, size_t i);
/* Change where a thread goes on; takes effect at release. */
int inject_set_regs(struct inject *t, size_t i, const struct user_regs_struct *regs);
/* Change a thread's signal mask, bit n-1 for signal n. */
int inject_set_mask(struct inject *t, size_t i, uint64_t mask);
/*
 * Let one thread run on by itself, all others standing, until it meets a breakpoint,
 * makes a call or a signal comes, for a millisecond at most, and hold it again.  It must
 * wait for nobody.  look() is asked before the breakpoint is taken or the call made, or
 * else at the end: 1, it has said yes; 0; -ESRCH: the thread has died.  A call is made
 * after the release.
 */
int inject_run_on(struct inject *t, size_t i, bool (*look)(void *arg, size_t i), void *arg);
/* Waits this signal to be delivered to the thread, sent to it alone with this si_code? */
bool inject_pending(const struct inject *t, size_t i, int sig, int code);
/*
 * Let everything run for about us microseconds, detached, and stop it again
 * (used while threads leave code that is going away).  On failure nothing is
 * held.  Indices and pointers of threads are new afterwards.
 */
int inject_breathe(struct inject *t, unsigned int us, struct err *err);

/*
 * A system call in the target, by one stopped thread with all its signals
 * blocked meanwhile and its registers, vector state and mask as before
 * afterwards.  Several calls between begin and end cost one save and restore.
 * Returns the call's result (negative errno as the kernel gives it); -ESRCH
 * also if the target was killed.  -EPERM from inject_begin(): a seccomp filter
 * that we may not suspend.
 */
int inject_begin(struct inject *t, struct err *err);
long inject_syscall(struct inject *t, long nr, long a, long b, long c, long d, long e, long f);
void inject_end(struct inject *t);

/*
 * Many calls at the price of one: all are made in their order, whatever the
 * others return.  Where a copy of the runner lies in the target, and the program
 * has a signal that does nothing, for its end, that is one stop of a thread; else
 * each call is two.  0, or what kept the table from being worked off.
 */
#define INJECT_OF_LAST (1ll << 32) /* with nr: arg[0] is what the call before it returned */
struct inject_call {
	long nr;
	long arg[6];
	long ret;
};
int inject_calls(struct inject *t, struct inject_call *v, size_t n);
/*
 * A tracer may be killed at any time: the thread then makes the calls of the table
 * that it was given, and goes on as it was found.  (Not so in a program in whose text
 * nothing is found that leads back, for calls without the runner.)
 *
 * The runner's code, to be written anywhere where the target can execute it.
 */
const void *inject_runner(size_t *len);
/* Where it lies; 0: nowhere (any more). */
void inject_use_runner(struct inject *t, uint64_t addr);
bool inject_has_runner(const struct inject *t);
/*
 * Memory of the target where the runner has its table when that is no longer than n,
 * so that it can be seen later which calls were made.  0, 0: none.
 */
void inject_use_journal(struct inject *t, uint64_t addr, size_t n);
/*
 * Has a thread still to make a call, or to come back from it, for one who was killed?
 * While held; not those in a runner, which are where that lies.
 */
bool inject_owes(struct inject *t);
/* What signal handlers of the program return through; 0: not found. */
uint64_t inject_restorer(const struct inject *t);

/*
 * Memory of the target for arguments between begin and end: on its stack below
 * the red zone, with the contents put back, or mapped for the time where the
 * stack has no room.  0: none to be had.
 */
uint64_t inject_scratch(struct inject *t, size_t len);

/* Through /proc/PID/mem: reaches pages that are r-x.  0 or -errno (-EIO: short). */
int inject_read(struct inject *t, uint64_t addr, void *buf, size_t len);
int inject_write(struct inject *t, uint64_t addr, const void *buf, size_t len);
int inject_mem_fd(const struct inject *t);
/* While held: where the mapping that has addr ends; 0: there is none. */
uint64_t inject_region_end(struct inject *t, uint64_t addr);

/*
 * Launch: the caller has forked a child that waits in inject_child_wait();
 * inject_exec() (in the tracer) lets it exec and returns with the new program
 * held at its entry point: libraries mapped, main not called.  fd is one end
 * of a stream socket pair each, closed on exec.  -ECHILD: the child ended
 * before (its exec failed; the caller reaps it and knows its status).  After
 * any other failure the child has been killed.
 */
int inject_child_wait(int fd); /* in the child, before its exec; 0 or -errno: don't exec */
int inject_exec(struct inject **ret, pid_t pid, int fd, struct err *err);

/*
 * Can this process be attached to, without touching it?  -EPERM, -ESRCH,
 * -EBUSY (TracerPid), -EOPNOTSUPP (32-bit, kernel thread, zombie), -EINVAL
 * (ourselves), each with its sentence in err.
 */
int inject_preflight(pid_t pid, struct err *err);

#endif
