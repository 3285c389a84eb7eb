/* SPDX-License-Identifier: MIT */
/*
 * Probes in another process: what the command ukprobe does, for C programs.
 *
 *	struct ukp_session *s;
 *	if (ukp_session_open(&s, pid) || ukp_session_add(s, "r malloc $retval", NULL) ||
 *	    ukp_session_start(s))
 *		fprintf(stderr, "%s\n", ukp_session_error(s));
 *	while (ukp_session_read(s, print, NULL, 100) >= 0)
 *		;
 *	ukp_session_close(s);
 *
 * A session is one client of the target's broker.  Its probes and records are
 * its own; closing it (or dying) takes its probes out.
 *
 * Errors: functions return 0 or a negative errno; ukp_session_error() has the
 * sentence.  Context: a session belongs to one thread at a time; every call
 * may sleep; none may be made in a signal handler but ukp_session_interrupt().
 * Ownership: what a call hands out belongs to the session and lives until
 * ukp_session_close(), records only during the callback.
 * Times are nanoseconds of CLOCK_MONOTONIC; addresses are the target's.
 */
#ifndef UKPROBES_SESSION_H
#define UKPROBES_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct ukp_session;

/* An event of this session, or the event that a record is of. */
struct ukp_event_info {
	unsigned int id;
	bool ret; /* return event */
	const char *group;
	const char *name;
	const char *place; /* "sym+0x0/0x12 [mod]"; of many places as defined */
	const char *func;  /* name of the probed function, "" unknown or many */
	uint64_t addr;     /* 0: many places */
	unsigned int nr_fields;
	const struct ukp_field *fields;
	unsigned int nr_places;
};

enum ukp_field_type { UKP_FIELD_U, UKP_FIELD_S, UKP_FIELD_X, UKP_FIELD_STRING, UKP_FIELD_F };

struct ukp_field {
	const char *name;
	enum ukp_field_type type;
	unsigned int size; /* 1, 2, 4, 8, 16; UKP_FIELD_F 4, 8, 10; strings 0 */
};

struct ukp_value {
	bool fault;      /* could not be read: prints (fault) */
	uint64_t num;    /* sign-extended for UKP_FIELD_S; of UKP_FIELD_F the low bytes */
	const char *str; /* UKP_FIELD_STRING, NUL-terminated; "" otherwise */
	size_t len;      /* without the NUL */
	uint64_t high;   /* what is above num, sign-extended for UKP_FIELD_S, else 0 */
	long double flt; /* UKP_FIELD_F; 0 otherwise */
};

struct ukp_record {
	const struct ukp_event_info *event;
	uint64_t time; /* ns */
	pid_t tid;     /* 0: unknown */
	unsigned int cpu;
	const char *comm; /* "<...>" when unknown */
	uint64_t ip;      /* p: the probed address; r: the function */
	uint64_t ret_ip;  /* r: where it returned to */
	unsigned int nr_values;
	const struct ukp_value *values;
};

/*
 * Attach to a running process.  *ret is set even on failure, for
 * ukp_session_error() and ukp_session_close(), unless it is NULL (-ENOMEM).
 * Errors: -ESRCH no such process, -EPERM no rights, -EBUSY traced by someone
 * else, -EOPNOTSUPP a kind of process that can't be probed, -EINVAL ourselves.
 */
int ukp_session_open(struct ukp_session **ret, pid_t pid);

/*
 * Launch a command and hold it right before its entry point:
 * shared libraries are mapped, main is not called.  It goes on at
 * ukp_session_start().  The child is the caller's: ukp_session_wait() reaps it.
 * Where the command itself can't be executed that call says it exited with 127
 * (there is none) or 126, as a shell would have it.
 */
int ukp_session_launch(struct ukp_session **ret, char *const argv[]);

/* Removes everything of this session from the target, then frees. */
void ukp_session_close(struct ukp_session *s);

/* The last failure, one sentence; definitions are followed by lines with the text and a caret. */
const char *ukp_session_error(const struct ukp_session *s);
pid_t ukp_session_pid(const struct ukp_session *s);
/* What the target may do later that a probe would kill it for, and the remedy; "": nothing known.
 */
const char *ukp_session_hazard(const struct ukp_session *s);

/* Add a definition line; nothing is planted before ukp_session_start().  id may be NULL. */
int ukp_session_add(struct ukp_session *s, const char *definition, unsigned int *id);
/*
 * A definition of many places (f GLOB, p SYM+*) leaves aside those that can't
 * be probed.  ukp_session_refused() has a line for each reason, "N: reason",
 * most first, for all definitions of the session; "" when none was refused.
 * Strict, before definitions are added: one such place refuses a definition,
 * or the start.
 */
void ukp_session_set_strict(struct ukp_session *s, bool strict);
/*
 * Definitions of one place that are added from now on may be in text that has no file
 * to be compared with, or differs from it: what a JIT has made, writable code, code that
 * the program has changed.  Shared mappings are refused all the same, and so are returns.
 * The program may rewrite such text or unmap it; ukp_session_dropped() tells then.
 */
void ukp_session_set_any_text(struct ukp_session *s, bool any);
const char *ukp_session_refused(struct ukp_session *s);
/*
 * Before definitions are added: processes that the target forks from now on, and that
 * these fork, hit and record as its threads do, from their first instruction to their
 * end or execve().  They have the probes that were in at their fork.  Returns are
 * followed by UKP_RET_SLOT alone.  A record's tid says whose it is.
 * That the target has executed another program is noticed sooner, too.
 */
void ukp_session_set_follow(struct ukp_session *s, bool follow);
/*
 * What catches the returns of functions, of definitions that are added from now
 * on.  AUTO: what is best for each function.  One that can't be right for a
 * function refuses it.  ukp_list() says which each probe has, and why.
 */
enum ukp_ret {
	UKP_RET_AUTO,
	UKP_RET_EXIT, /* probes at the exits; the stack stays as it is */
	UKP_RET_CALL, /* the function is called by us; needs a jump at its entry */
	UKP_RET_SLOT, /* the return address is replaced, as the kernel does */
};
void ukp_session_set_ret(struct ukp_session *s, enum ukp_ret how);
/*
 * A definition of one place in a library that isn't mapped yet, LIB:SYM or
 * LIB:0xOFFSET, waits for it, unless strict: it lands when the library is loaded,
 * before its constructors run, and each time again.  A "PLACE: why" line for each
 * that has never landed, "" when there is none: it isn't loaded, or what was
 * wrong when it was.
 */
const char *ukp_session_pending(struct ukp_session *s);
/*
 * Probes of this session may take this share, 0 to 1, of the CPU time that the
 * program uses, by an estimate twice a second; those that take most are taken out
 * until the rest fits, places that are counted one by one.  Theirs are the
 * "PLACE: why" lines of ukp_session_dropped(), each told once.  So are those of
 * ukp_session_set_any_text() whose text the program has rewritten.
 */
int ukp_session_set_budget(struct ukp_session *s, double share);
const char *ukp_session_dropped(struct ukp_session *s);
/*
 * Where a breakpoint would kill (what libc runs with all signals blocked, or may),
 * a probe is a jump or nothing.  A start waits for these jumps, some seconds at
 * most; so many of its places still wait for theirs, and are not probed before.
 */
unsigned int ukp_session_waiting(const struct ukp_session *s);
/*
 * Add a definition of which hits are counted by place, in the target, and
 * nothing is recorded: p, f or r without arguments, of one place or many.  Of
 * returns, ukp_session_counts() has the calls as hits, those that returned as
 * records, and the others as misses by reason.
 */
int ukp_session_add_stat(struct ukp_session *s, const char *definition, unsigned int *id);
/*
 * Calls fn for each place of such a definition that is or was planted, by
 * address in each file.  From the start on, at any time and as often as
 * wanted, after a stop and after the target's end too.  fn returns nonzero to
 * stop; returns that.  ukp_session_symbol() names an address.
 */
struct ukp_place_hits {
	uint64_t addr;
	uint64_t hits;
	bool ret; /* they are returns */
};
typedef int (*ukp_stat_fn)(const struct ukp_place_hits *place, void *arg);
int ukp_session_stat(struct ukp_session *s, unsigned int id, ukp_stat_fn fn, void *arg);
/* Add a latency function, FUNC[=KIND]. */
int ukp_session_add_latency(struct ukp_session *s, const char *func, unsigned int *id);
/* Plant all that was added since the last start: all or nothing. */
int ukp_session_start(struct ukp_session *s);
/* Take one out again; its counters stay readable. */
int ukp_session_remove(struct ukp_session *s, unsigned int id);
int ukp_session_enable(struct ukp_session *s, unsigned int id, bool on);
/* Take all out; records and counters stay readable until close.  What remains is said in the error.
 */
int ukp_session_stop(struct ukp_session *s);

const struct ukp_event_info *ukp_session_event(struct ukp_session *s, unsigned int id);

/*
 * Hand what has been recorded to fn in order of time, but for threads that lost their
 * CPU in the middle of a hit, whose records come late; waits up to timeout_ms
 * for the first one (-1: as long as it takes).  fn returns nonzero to stop; the
 * record that it was given counts as read.  Returns the number of records handed
 * over; -ESRCH when the target is gone, or has executed another program, and
 * everything was read (the error says the latter, and is empty when the target
 * just ended); -EPIPE when its broker died.
 */
typedef int (*ukp_record_fn)(const struct ukp_record *r, void *arg);
long ukp_session_read(struct ukp_session *s, ukp_record_fn fn, void *arg, int timeout_ms);
/* Makes a waiting ukp_session_read() return 0 soon.  Safe in a signal handler. */
void ukp_session_interrupt(struct ukp_session *s);

/* True while the target lives. */
bool ukp_session_alive(struct ukp_session *s);
/* Wait for a launched command; status as waitpid(2) has it. */
int ukp_session_wait(struct ukp_session *s, int *status);

#define UKP_NR_MISSES 7
struct ukp_counts {
	uint64_t hits;
	uint64_t records; /* written in the target */
	uint64_t misses;  /* hits - records, by reason below */
	uint64_t miss[UKP_NR_MISSES];
};
/* Of one event or latency function; id = UINT_MAX: sum of all. */
int ukp_session_counts(struct ukp_session *s, unsigned int id, struct ukp_counts *c);
/*
 * The target can write to the memory that its hits are counted and recorded in.
 * Counts that can't be are refused with -EBADMSG, here and below.  This says, or
 * is NULL, that there was something else than records where records belong.
 */
const char *ukp_session_damage(struct ukp_session *s);
/* "maxactive", "arena", "ring full", "recursion", "unreturned", "unwound", "frame" */
const char *ukp_miss_name(unsigned int reason);

/* A latency function's state, in nanoseconds.  Points into the session until the next call. */
struct ukp_latency_error {
	int64_t value;
	uint64_t count;
};
struct ukp_latency_info {
	const char *name; /* as given, without =KIND */
	const char *kind; /* "auto", "ptr", "s32", "s64", "none" */
	uint64_t count, errors;
	uint64_t min, max, mean;
	unsigned int nr_errors; /* by value, most frequent first */
	const struct ukp_latency_error *by_value;
	uint64_t other; /* errors whose value found no place */
};
int ukp_session_latency(struct ukp_session *s, unsigned int id, struct ukp_latency_info *info);
/* The value below which share q (0..1) of the calls lie; of the last ukp_session_latency(). */
uint64_t ukp_latency_quantile(struct ukp_session *s, unsigned int id, double q);
/* Calls that took lo <= ns < hi, to bucket precision. */
uint64_t ukp_latency_between(struct ukp_session *s, unsigned int id, uint64_t lo, uint64_t hi);

/* "sym+0x12/0x80 [mod]" of an address of the target, or "0x...". */
const char *ukp_session_symbol(struct ukp_session *s, uint64_t addr);

/*
 * About a process, without planting anything.  Each writes text lines to out
 * and returns 0, or a negative errno with the reason in *why (static text or
 * text that lives until the next call of this thread).
 */
/* The kernel's kprobes/list of all clients of the target's broker, plus form and reason. */
int ukp_list(pid_t pid, FILE *out, const char **why);
/* What must not be probed: 0xstart-0xend<TAB>symbol; pid 0: names only. */
int ukp_blacklist(pid_t pid, FILE *out, const char **why);
/*
 * Functions that can be probed, NAME<TAB>0xaddr<TAB>size<TAB>module; glob is
 * [MOD:]GLOB or NULL.  -ENOENT: nothing matches, or nothing that can be probed.
 */
int ukp_funcs(pid_t pid, const char *glob, FILE *out, const char **why);
/* Differences of text and files, agent present or not: 0 only if untouched, -EEXIST otherwise. */
int ukp_verify(pid_t pid, FILE *out, const char **why);
/* Removes what a crashed broker left.  0: nothing is left now. */
int ukp_cure(pid_t pid, FILE *out, const char **why);
/* What would hinder an attach: one line each, "ok"/"warn"/"no", what, remedy.  pid 0: this machine.
 */
int ukp_doctor(pid_t pid, FILE *out, const char **why);

/* Runs a broker: for the command "ukprobe broker", which the library starts itself. */
int ukp_broker_main(int argc, char **argv);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
