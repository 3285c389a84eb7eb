/* SPDX-License-Identifier: MIT */
/*
 * What an attach brings into a stopped process, in this order: the control
 * area, the agent's code, the instances, the stubs; and, when it has run on for
 * a moment, the dispositions and the probes that we plant for ourselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "engine/signal.h"
#include "patch/area.h"
#include "session/proto.h"
#include "session/target.h"
#include "wire/instance.h"

#define OPEN_TRIES 20 /* a quarter of a second */

/* What a full set blocks: not SIGKILL, SIGSTOP and libc's own 32 and 33. */
#define ALL_SIGNALS (~(1ull << 8 | 1ull << 18 | 1ull << 31 | 1ull << 32))

/* All signals, as libraries block them in threads of their own. */
static bool is_librarys(const struct target *t, const struct inject_thread *th)
{
	return th->tid != t->pid && (th->sigblk & ALL_SIGNALS) == ALL_SIGNALS;
}

/*
 * A thread that creates another or spawns a program blocks all signals, for a
 * moment: it is met again after that.
 */
int target_await_open(struct target *t, struct err *err)
{
	unsigned int us = 100, tries;
	int ret = 0;
	size_t i;

	for (tries = 0; !ret && tries < OPEN_TRIES; tries++) {
		for (i = 0; i < inject_nr_threads(t->inject); i++) {
			struct inject_thread *th = inject_thread_at(t->inject, i);

			if ((th->sigblk & 1ull << (UKP_SIGTRAP - 1)) && !is_librarys(t, th))
				break;
		}
		if (i == inject_nr_threads(t->inject))
			return 0;
		ret = inject_breathe(t->inject, us, err);
		us = us < 20000 ? us * 2 : us;
	}
	/* Who blocks it for good is refused with its reason. */
	return ret;
}

/*
 * A breakpoint met with SIGTRAP blocked kills.  Threads that a library keeps
 * for itself with all signals blocked (jemalloc's, say) get SIGTRAP opened,
 * and what a read in the jump form may raise, while we are here; a main thread that blocks it will
 * change its mask again.
 */
static int open_masks(struct target *t, struct err *err)
{
	uint64_t bit = 1ull << (UKP_SIGTRAP - 1);
	size_t i;
	uint32_t k;

	for (i = 0; i < inject_nr_threads(t->inject); i++) {
		struct inject_thread *th = inject_thread_at(t->inject, i);
		uint64_t mask = th->sigblk;

		if (!(mask & bit))
			continue;
		for (k = 0; k < t->own.nr_masks && t->own.mask[k] != mask; k++)
			;
		if (!is_librarys(t, th) || k == UKP_NR_MASKS)
			return err_set(err, -EOPNOTSUPP,
			               "thread %d of process %d blocks SIGTRAP: a probe would kill "
			               "it; targets that do are not supported yet",
			               th->tid, t->pid);
		/* Said before it is done, for whoever has to clean up. */
		t->own.mask[k] = mask;
		if (k == t->own.nr_masks)
			t->own.nr_masks++;
		memcpy(t->ctl->mask, t->own.mask, sizeof(t->own.mask));
		t->ctl->nr_masks = t->own.nr_masks;
		inject_set_mask(t->inject, i, mask & ~UKP_SIGNALS_OPEN);
	}
	return 0;
}

/* Nobody else may want SIGTRAP. */
static int check_signals(struct target *t, struct err *err)
{
	unsigned long long ign = 0, cgt = 0, bit = 1ull << (UKP_SIGTRAP - 1);
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", t->pid);
	f = fopen(path, "re");
	if (!f)
		return err_set(err, -ESRCH, "process %d is gone", t->pid);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "SigIgn: %llx", &ign);
		sscanf(line, "SigCgt: %llx", &cgt);
	}
	fclose(f);
	if (ign & bit)
		return err_set(err, -EOPNOTSUPP,
		               "process %d ignores SIGTRAP, which probes need; not supported yet",
		               t->pid);
	if (cgt & bit)
		return err_set(err, -EOPNOTSUPP,
		               "process %d handles SIGTRAP itself (or is probed by another tool); "
		               "not supported yet",
		               t->pid);
	return 0;
}

/*
 * Records carry the time, read with an instruction that a program can give up
 * (prctl(PR_SET_TSC); seccomp's strict mode does): it would fault on each hit.
 */
static int check_clock(struct target *t, struct err *err)
{
	uint64_t at = inject_scratch(t->inject, sizeof(int));
	int mode = 0;

	/* Where the kernel doesn't know the question, nobody can have given it up. */
	if (!at || inject_syscall(t->inject, SYS_prctl, PR_GET_TSC, at, 0, 0, 0, 0) ||
	    inject_read(t->inject, at, &mode, sizeof(mode)) || mode != PR_TSC_SIGSEGV)
		return 0;
	return err_set(err, -EOPNOTSUPP,
	               "process %d may not read the time stamp counter, as probes do: it has "
	               "called prctl(PR_SET_TSC), or runs in seccomp's strict mode",
	               t->pid);
}

static int make_ctl(struct target *t, struct err *err)
{
	struct ukp_ctl *ctl;
	uint64_t addr;
	long remote;

	t->ctl_fd = target_memfd(t, "ukprobes-ctl", UKP_CTL_SIZE, &remote, err);
	if (t->ctl_fd < 0)
		return t->ctl_fd;
	addr = target_map(t, 0, UKP_CTL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, remote,
	                  UKP_MAP_CTL, 0, err);
	inject_syscall(t->inject, SYS_close, remote, 0, 0, 0, 0, 0);
	if (!addr)
		return -ENOMEM;
	ctl = mmap(NULL, UKP_CTL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->ctl_fd, 0);
	if (ctl == MAP_FAILED) {
		inject_syscall(t->inject, SYS_munmap, addr, UKP_CTL_SIZE, 0, 0, 0, 0);
		return err_set(err, -errno, "cannot map the control area: %s", strerror(errno));
	}
	t->ctl = ctl;
	t->own.version = UKP_CTL_VERSION;
	t->own.self = addr;
	t->own.size = UKP_CTL_SIZE;
	t->own.broker = getpid();
	t->own.start_time = proto_start_time(t->pid);
	t->own.next_free = area_page_up(sizeof(*ctl));
	return 0;
}

static int write_agent(struct target *t, struct err *err)
{
	size_t len = agent_size();
	unsigned char *image;
	uint64_t addr;
	int ret;

	addr = target_map(t, 0, area_page_up(len), PROT_READ | PROT_EXEC,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, UKP_MAP_TEXT, 0, err);
	if (!addr)
		return err->code;
	image = malloc(len);
	if (!image)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(image, agent_image, len);
	memcpy(image + AGENT_OFF_CTL, &t->own.self, 8);
	ret = inject_write(t->inject, addr, image, len);
	free(image);
	if (ret)
		return err_set(err, ret,
		               "cannot write code into process %d: %s; does the kernel restrict "
		               "/proc/PID/mem (proc_mem.force_override)?",
		               t->pid, strerror(-ret));
	t->own.text = addr;
	t->own.flags = area_cpu_flags();
	return 0;
}

/* The page that fork wipes, and the instances with their pool. */
static int make_priv(struct target *t, struct err *err)
{
	struct ukp_objpool pool;
	struct ukp_priv priv;
	uint64_t addr;
	long ret;

	area_layout(&priv, &pool, AREA_INSTANCES);
	addr = target_map(t, 0, priv.size, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, UKP_MAP_PRIV, 0, err);
	if (!addr)
		return err->code;
	ret = inject_syscall(t->inject, SYS_madvise, addr, AREA_PAGE, AREA_WIPEONFORK, 0, 0, 0);
	if (ret)
		return err_set(err, ret,
		               "the kernel cannot wipe a page on fork (needs Linux 4.14)");
	ret = inject_write(t->inject, addr, &priv, sizeof(priv));
	if (!ret)
		ret = inject_write(t->inject, addr + priv.off_pool, &pool, sizeof(pool));
	if (ret)
		return err_set(err, ret, "cannot write to process %d: %s", t->pid, strerror(-ret));
	t->own.priv = addr;
	t->own.nr_instances = AREA_INSTANCES;
	return 0;
}

int target_stubs(struct target *t, struct err *err)
{
	uint64_t base;
	uint32_t i;
	long remote, ret = 0;
	int fd;

	fd = target_memfd(t, "ukprobes-stubs", AREA_STUB_CHUNK, &remote, err);
	if (fd < 0)
		return fd;
	t->stubs_fd = fd;
	base = target_map(t, 0, (uint64_t)AREA_CHUNKS * AREA_STUB_CHUNK, PROT_NONE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, UKP_MAP_STUBS, 0, err);
	for (i = 0; i < AREA_CHUNKS && base && ret >= 0; i++)
		ret = inject_syscall(t->inject, SYS_mmap, base + (uint64_t)i * AREA_STUB_CHUNK,
		                     AREA_STUB_CHUNK, PROT_READ | PROT_EXEC,
		                     MAP_PRIVATE | MAP_FIXED, remote, 0);
	inject_syscall(t->inject, SYS_close, remote, 0, 0, 0, 0, 0);
	if (ret < 0 && ret > -4096)
		return err_set(err, ret, "cannot map executable memory in process %d: %s", t->pid,
		               strerror(-ret));
	if (!base)
		return err->code;
	t->own.stubs = base;
	t->own.stub_chunk = AREA_STUB_CHUNK;
	t->own.stubs_per_chunk = AREA_STUBS_PER_CHUNK;
	t->ctl->stubs = t->own.stubs;
	t->ctl->stub_chunk = t->own.stub_chunk;
	t->ctl->stubs_per_chunk = t->own.stubs_per_chunk;
	return 0;
}

int target_fill(struct target *t, struct err *err)
{
	unsigned char *p = malloc(AREA_STUB_CHUNK);
	ssize_t n = -1;

	if (p) {
		area_stubs(p, t->own.text + agent_offset(AGENT_RETURN_ENTRY));
		n = pwrite(t->stubs_fd, p, AREA_STUB_CHUNK, 0);
	}
	free(p);
	close(t->stubs_fd);
	t->stubs_fd = -1;
	return n == AREA_STUB_CHUNK
	               ? 0
	               : err_set(err, -ENOMEM, "no memory for the return stubs of process %d",
	                         t->pid);
}

/* glibc's and musl's signal return: mov $15,%rax ; syscall. */
static uint64_t find_restorer(struct target *t)
{
	static const unsigned char code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	size_t i;

	for (i = 0; i < sym_nr_maps(t->sym); i++) {
		const struct sym_map *m = sym_map_at(t->sym, i);
		unsigned char *buf, *at;
		uint64_t len = m->end - m->start, found;

		if (!m->x || !m->module || len > (16u << 20))
			continue;
		buf = malloc(len);
		if (!buf)
			return 0;
		at = inject_read(t->inject, m->start, buf, len)
		             ? NULL
		             : memmem(buf, len, code, sizeof(code));
		found = at ? m->start + (at - buf) : 0;
		free(buf);
		if (found)
			return found;
	}
	return 0;
}

static uint64_t old_action(uint64_t priv, int sig)
{
	return priv + offsetof(struct ukp_priv, old) + sig * sizeof(struct ukp_sigaction);
}

static int take_signals(struct target *t, struct err *err)
{
	uint64_t at = inject_scratch(t->inject, 2 * sizeof(struct ukp_sigaction));
	struct ukp_sigaction sa;
	long ret;
	int sig;

	for (sig = 1; sig < UKP_NR_SIGNALS; sig++) {
		if (!(UKP_SIGNALS & 1ull << (sig - 1)))
			continue;
		ret = inject_syscall(t->inject, SYS_rt_sigaction, sig, 0, at, 8, 0, 0);
		if (ret || inject_read(t->inject, at, &sa, sizeof(sa)))
			return err_set(err, ret ? ret : -EIO, "cannot read signal %d of process %d",
			               sig, t->pid);
		if (inject_write(t->inject, old_action(t->own.priv, sig), &sa, sizeof(sa)))
			return err_set(err, -EIO, "cannot write to process %d", t->pid);
		sa.flags = area_signal_flags(sig, &sa);
		sa.handler = t->own.text + agent_offset(sig == UKP_SIGTRAP ? AGENT_TRAP_ENTRY
		                                                           : AGENT_FAULT_ENTRY);
		sa.restorer = t->own.text + agent_offset(AGENT_RESTORER);
		sa.mask = 0;
		if (inject_write(t->inject, at, &sa, sizeof(sa)))
			return err_set(err, -EIO, "cannot write to process %d", t->pid);
		/* Said before it is done: who cleans up compares before undoing. */
		t->own.taken |= 1ull << (sig - 1);
		t->ctl->taken = t->own.taken;
		ret = inject_syscall(t->inject, SYS_rt_sigaction, sig, at, 0, 8, 0, 0);
		if (ret)
			return err_set(err, ret, "cannot handle signal %d in process %d: %s", sig,
			               t->pid, strerror(-ret));
	}
	return 0;
}

/*
 * Where libc keeps a thread's id, counted from its thread pointer: the one
 * place that holds it in every thread.  Unknown (0) where there is none.
 */
static uint32_t find_tid_offset(struct target *t)
{
	enum { WORDS = 512 };
	static const uint32_t known[] = { 0x2d0, 0x30 };
	bool fits[WORDS], any = false;
	uint32_t word[WORDS];
	size_t i, w;

	memset(fits, true, sizeof(fits));
	for (i = 0; i < inject_nr_threads(t->inject) && i < 64; i++) {
		struct inject_thread *th = inject_thread_at(t->inject, i);

		if (!th->regs.fs_base ||
		    inject_read(t->inject, th->regs.fs_base, word, sizeof(word)))
			continue;
		any = true;
		for (w = 0; w < WORDS; w++)
			fits[w] = fits[w] && word[w] == (uint32_t)th->ns_tid;
	}
	if (!any)
		return 0;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (fits[known[i] / 4])
			return known[i];
	for (w = 1; w < WORDS; w++)
		if (fits[w])
			return w * 4;
	return 0;
}

/*
 * Symbols are read and functions decoded before the threads stand still: that
 * takes longer than all that is done then.
 */
int target_prepare(struct target *t, struct err *err)
{
	static const char *const unwinder[] = { "_Unwind_RaiseException", "_Unwind_ForcedUnwind",
		                                "_Unwind_Resume_or_Rethrow", "_Unwind_Backtrace",
		                                /* libc's, which load the unwinder only then */
		                                "backtrace", "pthread_exit" };
	size_t i;
	int ret;

	ret = probe_internal(t, "sigaction", AGENT_SIGACTION_HIT, err);
	for (i = 0; !ret && i < sizeof(unwinder) / sizeof(*unwinder); i++)
		ret = probe_internal(t, unwinder[i], AGENT_UNWIND_HIT, err);
	t->own.restorer = find_restorer(t);
	return ret;
}

/* A place that was unmapped since, or changed by someone, we do without. */
static int plant_internal(struct target *t, struct err *err)
{
	struct probe *p;
	int ret = 0;

	for (p = t->internal; p && !ret; p = p->next_mine)
		if (probe_untouched(t, p->addr))
			ret = probe_plant(t, p, err);
	return ret;
}

int target_bring(struct target *t, struct err *err)
{
	int ret = check_signals(t, err);

	if (!ret)
		ret = check_clock(t, err);
	if (!ret)
		ret = make_ctl(t, err);
	if (!ret)
		ret = write_agent(t, err);
	if (!ret)
		ret = make_priv(t, err);
	if (ret)
		return ret;
	memcpy(t->ctl, &t->own, sizeof(t->own));
	t->own.magic = UKP_CTL_MAGIC;
	/* From here on the area is whole: whoever finds it may cure by it. */
	__atomic_store_n(&t->ctl->magic, UKP_CTL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int target_take(struct target *t, struct err *err)
{
	int ret = check_signals(t, err);

	if (ret)
		return ret;
	t->own.tid_off = find_tid_offset(t);
	t->ctl->tid_off = t->own.tid_off;
	ret = take_signals(t, err);
	if (!ret)
		ret = open_masks(t, err);
	if (!ret)
		ret = plant_internal(t, err);
	return ret;
}
