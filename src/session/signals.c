/* SPDX-License-Identifier: MIT */
/*
 * The signals of a target made ours: their dispositions, and the masks of handlers that
 * would run with SIGTRAP blocked.  leave_signals.c is the way back.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "patch/area.h"
#include "session/proto.h"
#include "session/target.h"
#include "wire/instance.h"

/* The signals that are ours, in their order. */
static unsigned int our_signals(int sig[UKP_NR_SIGNALS])
{
	unsigned int n = 0;
	int i;

	for (i = 1; i < UKP_NR_SIGNALS; i++)
		if (UKP_SIGNALS & 1ull << (i - 1))
			sig[n++] = i;
	return n;
}

static void our_action(const struct target *t, int sig, struct ukp_sigaction *sa)
{
	sa->flags = area_signal_flags(sig, sa);
	sa->handler = t->own.text +
	              agent_offset(sig == UKP_SIGTRAP ? AGENT_TRAP_ENTRY : AGENT_FAULT_ENTRY);
	sa->restorer = t->own.text + agent_offset(AGENT_RESTORER);
	sa->mask = 0;
}

/*
 * What they were goes to where the agent and whoever cleans up find it.  A SIGTRAP
 * that is no probe's goes on to the program, whether it handles or ignores it.
 */
static int keep_actions(struct target *t, const int *sig, const struct ukp_sigaction *was,
                        unsigned int n, struct err *err)
{
	struct ukp_sigaction old[UKP_NR_SIGNALS];
	uint64_t at = t->own.priv + offsetof(struct ukp_priv, old);
	unsigned int i;

	_Static_assert(sizeof(old) == sizeof(((struct ukp_priv *)0)->old), "one for each signal");
	memset(old, 0, sizeof(old));
	for (i = 0; i < n; i++)
		old[sig[i]] = was[i];
	return inject_write(t->inject, at, old, sizeof(old))
	               ? err_set(err, -EIO, "cannot write to process %d", t->pid)
	               : 0;
}

int target_take_signals(struct target *t, struct err *err)
{
	struct inject_call v[UKP_NR_SIGNALS] = { 0 };
	struct ukp_sigaction sa[UKP_NR_SIGNALS];
	int sig[UKP_NR_SIGNALS], ret = 0;
	unsigned int i, n = our_signals(sig);
	uint64_t at;

	/* Those that are in force may be ours, and are not to be taken for the program's. */
	if (t->own.taken)
		return err_set(err, -EIO, "cannot handle signals in process %d: it failed before",
		               t->pid);
	at = inject_scratch(t->inject, n * sizeof(*sa));
	for (i = 0; i < n; i++)
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], 0, at + i * sizeof(*sa), 8 },
			                     0 };
	ret = at ? inject_calls(t->inject, v, n) : -ENOMEM;
	for (i = 0; i < n && !ret; i++)
		ret = (int)v[i].ret;
	if (ret || inject_read(t->inject, at, sa, n * sizeof(*sa)))
		return err_set(err, ret ? ret : -EIO, "cannot read the signals of process %d",
		               t->pid);
	ret = keep_actions(t, sig, sa, n, err);
	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		our_action(t, sig[i], &sa[i]);
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + i * sizeof(*sa), 0, 8 },
			                     0 };
		/* Said before it is done: who cleans up compares before undoing. */
		t->own.taken |= 1ull << (sig[i] - 1);
	}
	t->ctl->taken = t->own.taken;
	ret = inject_write(t->inject, at, sa, n * sizeof(*sa));
	if (!ret)
		ret = inject_calls(t->inject, v, n);
	for (i = 0; i < n && !ret; i++)
		ret = (int)v[i].ret;
	return ret ? err_set(err, ret, "cannot handle signals in process %d: %s", t->pid,
	                     strerror(-ret))
	           : 0;
}

/* What the kernel says of these signals, into *sa and to at in the target; false: nothing. */
static bool ask_actions(struct target *t, const int *sig, unsigned int n, uint64_t at,
                        struct ukp_sigaction *sa)
{
	struct inject_call v[UKP_NR_SIGNALS];
	unsigned int i;

	for (i = 0; i < n; i++)
		v[i] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], 0, at + i * sizeof(*sa), 8 },
			                     -1 };
	if (!n || !at || inject_calls(t->inject, v, n))
		return false;
	for (i = 0; i < n; i++)
		if (v[i].ret)
			return false;
	return !inject_read(t->inject, at, sa, n * sizeof(*sa));
}

/* Said before it is done: who cleans up compares before undoing. */
static bool say_opened(struct target *t, int sig, const struct ukp_sigaction *was, uint64_t *opened)
{
	const uint64_t priv = t->own.priv;

	*opened |= 1ull << (sig - 1);
	return !inject_write(t->inject, priv + offsetof(struct ukp_priv, old) + sig * sizeof(*was),
	                     was, sizeof(*was)) &&
	       !inject_write(t->inject, priv + offsetof(struct ukp_priv, opened), opened,
	                     sizeof(*opened));
}

/*
 * Handlers that run with SIGTRAP blocked, mostly with all signals: in what they call a
 * breakpoint would kill.  Where it can't be opened it is as it was.
 */
void target_open_handlers(struct target *t)
{
	/* Only these have to be asked for. */
	const uint64_t caught = proto_status(t->pid, "SigCgt", 16);
	const uint64_t bit = 1ull << (UKP_SIGTRAP - 1);
	struct inject_call v[UKP_NR_SIGNALS];
	struct ukp_sigaction sa[UKP_NR_SIGNALS];
	int sig[UKP_NR_SIGNALS];
	unsigned int i, n = 0, m = 0;
	uint64_t at, opened = 0;

	for (i = 1; i < UKP_NR_SIGNALS; i++)
		if (caught & ~t->own.taken & 1ull << (i - 1))
			sig[n++] = (int)i;
	at = n ? inject_scratch(t->inject, n * sizeof(*sa)) : 0;
	if (!ask_actions(t, sig, n, at, sa))
		return;
	for (i = 0; i < n; i++) {
		if (sa[i].handler <= UKP_SIG_IGN || !(sa[i].mask & bit))
			continue;
		if (!say_opened(t, sig[i], &sa[i], &opened))
			return;
		sa[m] = sa[i];
		sa[m].mask &= ~bit;
		v[m] = (struct inject_call){ SYS_rt_sigaction,
			                     { sig[i], at + m * sizeof(*sa), 0, 8 },
			                     0 };
		m++;
	}
	if (m && !inject_write(t->inject, at, sa, m * sizeof(*sa)))
		inject_calls(t->inject, v, m);
}
