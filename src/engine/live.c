/* SPDX-License-Identifier: MIT */
/*
 * Hits in text that the program may rewrite (wire/live.h).  Where it has patched the
 * rest of a probed instruction, the copy in the slot is the old one: the first byte
 * is put back, and the instruction executed in its place.
 *
 * That is once in a probe's life, and the one case in which a hit may call the
 * system: where the page can't be written just now, or nobody would tell us so.
 */
#include "engine/hit.h"
#include "engine/signal.h"
#include "wire/live.h"

enum {
	NR_open = 2,
	NR_close = 3,
	NR_mprotect = 10,
	NR_rt_sigprocmask = 14,
	NR_pwrite64 = 18,
	OPEN_WRITE = 02000001, /* O_CLOEXEC, too */
	READ_EXEC = 5,
	READ_WRITE_EXEC = 7,
	HOW_UNBLOCK = 1,
	HOW_SETMASK = 2
};

/* False: nothing can be told, the text can't be read. */
static bool read_text(const struct ukp_ctl *ctl, const struct ukp_site *s, uint8_t *now,
                      unsigned int n)
{
	unsigned int i;

	if (ukp_arch_copy(now, (void *)s->addr, n))
		return false;
	for (i = 1; i < n; i++) {
		const struct ukp_site *other =
			now[i] == 0xcc ? ukp_site_find(ctl, s->addr + i) : NULL;

		if (other)
			now[i] = other->orig[0];
	}
	return true;
}

bool ukp_live_put(uint64_t addr, uint8_t old_byte, uint8_t new_byte, bool fatal)
{
	const uint64_t faults = 1ull << (UKP_SIGSEGV - 1) | 1ull << (UKP_SIGBUS - 1);
	uint64_t mask;
	bool done;

	if (fatal)
		ukp_arch_syscall(NR_rt_sigprocmask, HOW_UNBLOCK, (long)&faults, (long)&mask, 8);
	done = ukp_arch_put((uint8_t *)addr, old_byte, new_byte);
	if (fatal)
		ukp_arch_syscall(NR_rt_sigprocmask, HOW_SETMASK, (long)&mask, 0, 8);
	return done;
}

/* Whatever the page's protection is, which other threads may be about to change. */
static bool put_by_file(const struct ukp_site *s)
{
	long fd = ukp_arch_syscall(NR_open, (long)"/proc/thread-self/mem", OPEN_WRITE, 0, 0), n;

	if (fd < 0)
		return false;
	n = ukp_arch_syscall(NR_pwrite64, fd, (long)s->orig, 1, (long)s->addr);
	ukp_arch_syscall(NR_close, fd, 0, 0, 0);
	return n == 1;
}

static bool put_back(const struct ukp_site *s, bool fatal)
{
	const long page = (long)(s->addr & ~(uint64_t)(UKP_LIVE_PAGE - 1));
	bool done;

	if (ukp_live_put(s->addr, 0xcc, s->orig[0], fatal) || put_by_file(s))
		return true;
	if (ukp_arch_syscall(NR_mprotect, page, UKP_LIVE_PAGE, READ_WRITE_EXEC, 0))
		return false;
	done = ukp_live_put(s->addr, 0xcc, s->orig[0], fatal);
	ukp_arch_syscall(NR_mprotect, page, UKP_LIVE_PAGE, READ_EXEC, 0);
	return done;
}

/* Of text that its program leaves alone only the instruction is known. */
static enum ukp_live look(const struct ukp_ctl *ctl, const struct ukp_site *s)
{
	const bool live = s->flags & UKP_SITE_LIVE;
	const unsigned int n = live ? ukp_live_bytes(s->addr, s->len) : s->len;
	uint8_t now[UKP_LIVE_MAX];
	unsigned int i;

	if (n > sizeof(now) || !read_text(ctl, s, now, n))
		return UKP_LIVE_OURS;
	if (live)
		return ukp_live_judge(s, now, n);
	for (i = 1; i < n && now[i] == s->orig[i]; i++)
		;
	return i < n ? UKP_LIVE_GONE : UKP_LIVE_OURS;
}

/*
 * There may be several sites of an address, of code that was there before.  The
 * breakpoint is the newest one's, which is the last in the area; but in a forked child
 * that shares our memory and not our text, it is that of the one whose text it has.
 */
static struct ukp_site *choose(const struct ukp_ctl *ctl, uint64_t addr, bool by_text)
{
	const struct ukp_site_table *t = ukp_ctl_at(ctl, ctl->sites);
	uint32_t i = ukp_site_hash(addr), n, off;
	enum ukp_live is, found = UKP_LIVE_GONE;
	struct ukp_site *s, *best = NULL;

	for (n = 0; n <= t->mask && (off = t->site[i & t->mask]); n++, i++) {
		s = ukp_ctl_at(ctl, off);
		is = s->addr != addr ? UKP_LIVE_GONE : by_text ? look(ctl, s) : UKP_LIVE_OURS;
		if (is == UKP_LIVE_GONE || is > found || (is == found && s < best))
			continue;
		best = s;
		found = is;
	}
	return best;
}

/*
 * More than half of what stood around it is other code, but our byte may be there
 * still: of a program that has patched all behind it.  It is an instruction's start,
 * for it was executed; it ends a program that has no handler; and code that ends
 * itself on purpose does so by a row of them, which is also what runtimes fill memory
 * with.  Not in forked children, whose text is that of another site perhaps.
 */
static bool is_left(const struct ukp_ctl *ctl, const struct ukp_site *s)
{
	uint8_t now[2];

	return ukp_old_action(ctl, UKP_SIGTRAP)->handler <= UKP_SIG_IGN &&
	       (__atomic_load_n(&s->action, __ATOMIC_RELAXED) ||
	        __atomic_load_n(&s->flags, __ATOMIC_RELAXED) & UKP_SITE_LEFT) &&
	       !ukp_arch_copy(now, (void *)s->addr, sizeof(now)) && now[0] == 0xcc &&
	       now[1] != 0xcc;
}

struct ukp_site *ukp_live_find(const struct ukp_ctl *ctl, uint64_t addr,
                               const struct ukp_ucontext *uc)
{
	const bool shares = !ukp_hit_alive(ctl) && !(ctl->flags & UKP_CTL_OWN);
	struct ukp_site *s = choose(ctl, addr, shares);
	enum ukp_live is = UKP_LIVE_GONE;

	if (s)
		is = s->flags & UKP_SITE_LIVE ? look(ctl, s) : UKP_LIVE_OURS;
	/* Where it can't be put back there is no better way than the old one. */
	if (is == UKP_LIVE_PATCHED && put_back(s, ukp_faults_are_fatal(uc)))
		is = UKP_LIVE_GONE;
	else if (is == UKP_LIVE_GONE && s && !shares && is_left(ctl, s))
		put_back(s, ukp_faults_are_fatal(uc));
	return is == UKP_LIVE_GONE ? NULL : s;
}
