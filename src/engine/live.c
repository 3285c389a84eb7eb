/* SPDX-License-Identifier: MIT */
/*
 * Hits in text that the program may rewrite (wire/live.h).  Where it has patched the
 * rest of a probed instruction, the copy in the slot is the old one: the first byte
 * is put back, and the instruction executed in its place.
 *
 * That is once in a probe's life, and the one case in which a hit may call the
 * system: where the page can't be written just now.
 */
#include "engine/hit.h"
#include "engine/signal.h"
#include "wire/live.h"

#define SYS_MPROTECT 10
#define READ_EXEC 5
#define READ_WRITE_EXEC 7

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

static bool put_back(const struct ukp_site *s, bool fatal)
{
	const uint64_t page = s->addr & ~(uint64_t)(UKP_LIVE_PAGE - 1);
	bool done;

	if ((!fatal || (s->flags & UKP_SITE_WRITABLE)) &&
	    ukp_arch_put((uint8_t *)s->addr, 0xcc, s->orig[0]))
		return true;
	if (ukp_arch_syscall(SYS_MPROTECT, (long)page, UKP_LIVE_PAGE, READ_WRITE_EXEC, 0))
		return false;
	done = ukp_arch_put((uint8_t *)s->addr, 0xcc, s->orig[0]);
	ukp_arch_syscall(SYS_MPROTECT, (long)page, UKP_LIVE_PAGE, READ_EXEC, 0);
	return done;
}

static enum ukp_live look(const struct ukp_ctl *ctl, const struct ukp_site *s)
{
	const unsigned int n = ukp_live_bytes(s->addr, s->len);
	uint8_t now[UKP_LIVE_MAX];

	if (n > sizeof(now) || !read_text(ctl, s, now, n))
		return UKP_LIVE_OURS;
	return ukp_live_judge(s, now, n);
}

/*
 * The site of addr whose text this is.  There may be several: of code that was there
 * before, which a forked child may have still.
 */
struct ukp_site *ukp_live_find(const struct ukp_ctl *ctl, uint64_t addr,
                               const struct ukp_ucontext *uc)
{
	const struct ukp_site_table *t = ukp_ctl_at(ctl, ctl->sites);
	uint32_t i = ukp_site_hash(addr), n, off;

	for (n = 0; n <= t->mask && (off = t->site[i & t->mask]); n++, i++) {
		struct ukp_site *s = ukp_ctl_at(ctl, off);
		enum ukp_live is = s->addr == addr ? look(ctl, s) : UKP_LIVE_GONE;

		if (is == UKP_LIVE_OURS)
			return s;
		/* Where it can't be put back there is no better way than the old one. */
		if (is == UKP_LIVE_PATCHED)
			return put_back(s, ukp_faults_are_fatal(uc)) ? NULL : s;
	}
	return NULL;
}
