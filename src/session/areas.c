/* SPDX-License-Identifier: MIT */
/*
 * The memory that an attach brings into a process, in one short stop: the
 * agent's code, the control area, the instances and the stubs.  They are filled
 * while the process runs on, for nothing leads there yet.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "patch/area.h"
#include "session/target.h"
#include "wire/instance.h"

/* The agent, and behind it what makes system calls for us. */
int target_image(struct target *t, struct err *err)
{
	size_t runner_len, at = (agent_size() + 15) & ~15ul;
	const void *runner = inject_runner(&runner_len);

	t->image_len = at + runner_len;
	t->image = calloc(1, t->image_len);
	if (!t->image)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(t->image, agent_image, agent_size());
	memcpy(t->image + at, runner, runner_len);
	t->own.runner = at;
	return 0;
}

/*
 * One file, mapped once as a whole and then piece by piece over that: there is never
 * more than one thing to be found by its name, and it goes in one call.
 *
 *	ctl	shared			the file from its beginning
 *	text	r-x			behind it
 *	stubs	r-x, again and again	behind that
 *	priv	anonymous		beyond the file
 */
#define TEXT_AT ((uint64_t)UKP_CTL_SIZE)
#define TEXT_SIZE (64ull << 10)
#define STUBS_AT (TEXT_AT + TEXT_SIZE)
#define STUBS_SIZE ((uint64_t)AREA_CHUNKS * AREA_STUB_CHUNK)
#define PRIV_AT (STUBS_AT + STUBS_SIZE)
#define FILE_SIZE (STUBS_AT + AREA_STUB_CHUNK)

uint64_t target_priv_size(void)
{
	struct ukp_frames frames;
	struct ukp_objpool pool;
	struct ukp_priv priv;

	area_layout(&priv, &pool, AREA_INSTANCES);
	area_frames(&priv, &frames, AREA_FRAMES);
	return priv.size;
}

uint64_t target_area_size(void)
{
	return PRIV_AT + target_priv_size();
}

void target_lay_out(struct ukp_ctl *c, uint64_t addr)
{
	const struct ukp_mapping pieces[] = {
		{ addr, UKP_CTL_SIZE, UKP_MAP_CTL, 0 },
		{ addr + TEXT_AT, TEXT_SIZE, UKP_MAP_TEXT, 0 },
		{ addr + STUBS_AT, STUBS_SIZE, UKP_MAP_STUBS, 0 },
		{ addr + PRIV_AT, target_priv_size(), UKP_MAP_PRIV, 0 },
	};

	c->version = UKP_CTL_VERSION;
	c->size = UKP_CTL_SIZE;
	c->self = addr;
	c->text = addr + TEXT_AT;
	c->next_free = area_page_up(sizeof(*c));
	c->nr_mappings = sizeof(pieces) / sizeof(*pieces);
	memcpy(c->mapping, pieces, sizeof(pieces));
}

/* Its file, open here as well. */
static long make_file(struct target *t, struct err *err)
{
	static const char name[] = "ukprobes-ctl";
	long fd;

	t->ctl_fd = target_memfd(t, name, FILE_SIZE, &fd, err);
	if (t->ctl_fd < 0)
		return err->code;
	if (pwrite(t->ctl_fd, t->image, t->image_len, TEXT_AT) == (ssize_t)t->image_len)
		return fd;
	inject_syscall(t->inject, SYS_close, fd, 0, 0, 0, 0, 0);
	return err_set(err, -ENOMEM, "no memory for the agent of process %d", t->pid);
}

/* Ours of the control area: from now on whoever finds it may cure by it. */
static int open_ctl(struct target *t, struct err *err)
{
	struct ukp_ctl *ctl;

	ctl = mmap(NULL, UKP_CTL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->ctl_fd, 0);
	if (ctl == MAP_FAILED)
		return err_set(err, -errno, "cannot map the control area: %s", strerror(errno));
	t->ctl = ctl;
	memcpy(ctl, &t->own, sizeof(t->own));
	t->own.magic = UKP_CTL_MAGIC;
	__atomic_store_n(&ctl->magic, UKP_CTL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int map_whole(struct target *t, long fd, struct err *err)
{
	const long rx = PROT_READ | PROT_EXEC;
	long addr = inject_syscall(t->inject, SYS_mmap, 0, target_area_size(),
	                           t->locks ? PROT_NONE : rx, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	int ret;

	if (addr < 0 && addr > -4096)
		return err_set(err, (int)addr, "cannot map memory in process %d: %s", t->pid,
		               strerror((int)-addr));
	target_lay_out(&t->own, addr);
	if (t->locks)
		inject_syscall(t->inject, SYS_mmap, t->own.text, TEXT_SIZE, rx,
		               MAP_PRIVATE | MAP_FIXED, fd, TEXT_AT);
	ret = inject_write(t->inject, t->own.text, t->image, sizeof(uint64_t));
	if (ret)
		return err_set(err, ret,
		               "cannot write code into process %d: %s; does the kernel restrict "
		               "/proc/PID/mem (proc_mem.force_override)?",
		               t->pid, strerror(-ret));
	ret = open_ctl(t, err);
	if (!ret)
		inject_use_runner(t->inject, t->own.text + t->own.runner);
	return ret;
}

/*
 * Records carry the time, read with an instruction that a program can give up
 * (prctl(PR_SET_TSC); seccomp's strict mode does): it would fault on each hit.
 */
static int check_clock(struct target *t, const struct inject_call *asked, uint64_t at,
                       struct err *err)
{
	int mode = 0;

	/* Where the kernel doesn't know the question, nobody can have given it up. */
	if (asked->ret || inject_read(t->inject, at, &mode, sizeof(mode)) || mode != PR_TSC_SIGSEGV)
		return 0;
	return err_set(err, -EOPNOTSUPP,
	               "process %d may not read the time stamp counter, as probes do: it has "
	               "called prctl(PR_SET_TSC), or runs in seccomp's strict mode",
	               t->pid);
}

/* For a warning; who takes a smaller one later isn't seen. */
static void look_at_altstack(struct target *t, const struct inject_call *asked, uint64_t at)
{
	stack_t st;

	if (!asked->ret && !inject_read(t->inject, at, &st, sizeof(st)) &&
	    !(st.ss_flags & SS_DISABLE))
		t->altstack = st.ss_size;
}

enum {
	CALL_CTL,
	CALL_PRIV,
	CALL_WIPE,
	CALL_STUBS,
	CALL_CLOSE = CALL_STUBS + AREA_CHUNKS,
	CALL_CLOCK,
	CALL_ALTSTACK,
	CALL_DUMP,
	CALLS = CALL_DUMP + AREA_LEFT_OUT,
};

/* A core has no use for most of it: whether the kernel leaves it out is no matter here. */
static void leave_out_of_cores(struct inject_call *c, uint64_t base)
{
	struct area_piece out[AREA_LEFT_OUT];
	struct ukp_objpool pool;
	struct ukp_frames frames;
	struct ukp_priv priv;
	unsigned int i;

	area_layout(&priv, &pool, AREA_INSTANCES);
	area_frames(&priv, &frames, AREA_FRAMES);
	area_left_out(&priv, out);
	for (i = 0; i < AREA_LEFT_OUT; i++) {
		const uint64_t at = base + (out[i].priv ? PRIV_AT : 0) + out[i].off;

		c[i] = (struct inject_call){ SYS_madvise, { at, out[i].len, MADV_DONTDUMP }, -1 };
	}
}

static void list_pieces(struct inject_call v[CALLS], uint64_t base, long fd, uint64_t mode)
{
	const long rx = PROT_READ | PROT_EXEC, rw = PROT_READ | PROT_WRITE;
	const long anon = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	const long over = MAP_PRIVATE | MAP_FIXED, size = target_priv_size();
	uint64_t at = base + STUBS_AT;
	struct inject_call *c = v + CALL_STUBS;

	v[CALL_CTL] = (struct inject_call){ SYS_mmap,
		                            { base, UKP_CTL_SIZE, rw, MAP_SHARED | MAP_FIXED, fd },
		                            -1 };
	v[CALL_PRIV] = (struct inject_call){ SYS_mmap, { base + PRIV_AT, size, rw, anon, -1 }, -1 };
	v[CALL_WIPE] = (struct inject_call){ SYS_madvise,
		                             { base + PRIV_AT, AREA_PAGE, AREA_WIPEONFORK },
		                             -1 };
	for (; c < v + CALL_CLOSE; c++, at += AREA_STUB_CHUNK)
		*c = (struct inject_call){ SYS_mmap,
			                   { at, AREA_STUB_CHUNK, rx, over, fd, STUBS_AT },
			                   -1 };
	v[CALL_CLOSE] = (struct inject_call){ SYS_close, { fd }, -1 };
	v[CALL_CLOCK] = (struct inject_call){ SYS_prctl, { PR_GET_TSC, mode }, -1 };
	v[CALL_ALTSTACK] = (struct inject_call){ SYS_sigaltstack, { 0, mode + 8 }, -1 };
	leave_out_of_cores(v + CALL_DUMP, base);
}

/*
 * Where the program has all its memory locked, also what comes (mlockall()), the kernel
 * makes each page of a mapping at once that can be read: half a gigabyte, of which we use
 * some hundred kilobytes.  What can't be read is not made, and then it is unlocked.
 */
static void close_pieces(struct inject_call v[CALLS])
{
	v[CALL_CTL].arg[2] = PROT_NONE;
	v[CALL_PRIV].arg[2] = PROT_NONE;
}

int target_unlock(struct target *t, uint64_t addr, uint64_t len)
{
	struct inject_call v[] = {
		{ SYS_munlock, { addr, len }, -1 },
		{ SYS_mprotect, { addr, len, PROT_READ | PROT_WRITE }, -1 },
	};
	int ret = inject_calls(t->inject, v, 2);

	return ret ? ret : (int)v[1].ret;
}

static int unlock_pieces(struct target *t)
{
	int ret = target_unlock(t, t->own.self, UKP_CTL_SIZE);

	return ret ? ret : target_unlock(t, t->own.self + PRIV_AT, target_priv_size());
}

/* The rest of the area over the whole, and the file closed, whatever becomes of it. */
static int map_pieces(struct target *t, long fd, struct err *err)
{
	uint64_t mode = inject_scratch(t->inject, 8 + sizeof(stack_t));
	struct inject_call v[CALLS];
	int ret, i;

	list_pieces(v, t->own.self, fd, mode);
	if (t->locks)
		close_pieces(v);
	if (!mode) {
		inject_calls(t->inject, v + CALL_CLOSE, 1);
		return err_set(err, -EIO, "cannot write to process %d", t->pid);
	}
	ret = inject_calls(t->inject, v, CALLS);
	for (i = 0; i < CALL_CLOSE && !ret; i++)
		if (v[i].ret < 0 && v[i].ret > -4096)
			ret = (int)v[i].ret;
	if (ret && i == CALL_WIPE + 1)
		return err_set(err, ret,
		               "the kernel cannot wipe a page on fork (needs Linux 4.14)");
	if (!ret && t->locks)
		ret = unlock_pieces(t);
	if (ret)
		return err_set(err, ret, "cannot map memory in process %d: %s", t->pid,
		               strerror(-ret));
	look_at_altstack(t, &v[CALL_ALTSTACK], mode + 8);
	return check_clock(t, &v[CALL_CLOCK], mode, err);
}

/* Of an area that never was whole. */
static void take_back(struct target *t)
{
	inject_use_runner(t->inject, 0);
	if (t->own.self)
		inject_syscall(t->inject, SYS_munmap, t->own.self, target_area_size(), 0, 0, 0, 0);
}

int target_bring(struct target *t, struct err *err)
{
	long fd = make_file(t, err);
	int ret;

	if (fd < 0)
		return (int)fd;
	ret = map_whole(t, fd, err);
	if (ret)
		inject_syscall(t->inject, SYS_close, fd, 0, 0, 0, 0, 0);
	else
		ret = map_pieces(t, fd, err);
	if (ret) {
		take_back(t);
		return ret;
	}
	t->own.priv = t->own.self + PRIV_AT;
	t->own.nr_instances = AREA_INSTANCES;
	t->own.stubs = t->own.self + STUBS_AT;
	t->own.stub_chunk = AREA_STUB_CHUNK;
	t->own.stubs_per_chunk = AREA_STUBS_PER_CHUNK;
	memcpy(t->ctl, &t->own, sizeof(t->own));
	return 0;
}

uint64_t target_frames(const struct target *t, struct ukp_frames *head)
{
	struct ukp_objpool pool;
	struct ukp_priv priv;

	area_layout(&priv, &pool, AREA_INSTANCES);
	area_frames(&priv, head, AREA_FRAMES);
	return t->own.priv + priv.off_frames;
}

/* The page that fork wipes, and the instances with their pool. */
static int fill_priv(struct target *t)
{
	const uint64_t none = 0; /* into the first instance, so that its page is there */
	struct ukp_frames frames;
	struct ukp_objpool pool;
	struct ukp_priv priv;
	int ret;

	area_layout(&priv, &pool, AREA_INSTANCES);
	priv.alive = (uint64_t)inject_ns_pid(t->inject);
	area_frames(&priv, &frames, AREA_FRAMES);
	ret = inject_write(t->inject, t->own.priv, &priv, sizeof(priv));
	if (!ret)
		ret = inject_write(t->inject, t->own.priv + priv.off_frames, &frames,
		                   sizeof(frames));
	if (!ret)
		ret = inject_write(t->inject, t->own.priv + priv.off_pool, &pool, sizeof(pool));
	if (!ret)
		ret = inject_write(t->inject, t->own.priv + priv.off_instances, &none,
		                   sizeof(none));
	return ret;
}

static int fill_stubs(struct target *t)
{
	unsigned char *p = malloc(AREA_STUB_CHUNK);
	ssize_t n = -1;

	if (p) {
		area_stubs(p, t->own.text + agent_offset(AGENT_RETURN_ENTRY));
		n = pwrite(t->ctl_fd, p, AREA_STUB_CHUNK, STUBS_AT);
	}
	free(p);
	return n == AREA_STUB_CHUNK ? 0 : -ENOMEM;
}

int target_stubs(struct target *t, struct err *err)
{
	struct probe *p;

	if (t->has_stubs)
		return 0;
	if (fill_stubs(t))
		return err_set(err, -ENOMEM, "no memory for the return stubs of process %d",
		               t->pid);
	t->has_stubs = true;
	/* From the next start on unwinders have to know of them. */
	for (p = t->internal; p && !t->no_traps; p = p->next_mine)
		p->enabled = p->enabled || p->id == AGENT_UNWIND_HIT;
	return 0;
}

/* A place that was unmapped since we do without. */
static void ready_internal(struct target *t)
{
	struct err ignored = ERR_INIT;
	struct probe *p;

	for (p = t->internal; p; p = p->next_mine)
		probe_ready(t, p, &ignored);
}

int target_fill(struct target *t, struct err *err)
{
	int ret = inject_write(t->inject, t->own.text + AGENT_OFF_CTL, &t->own.self, 8);

	if (!ret)
		ret = fill_priv(t);
	if (ret)
		return err_set(err, ret, "cannot write to process %d: %s", t->pid, strerror(-ret));
	ready_internal(t);
	return 0;
}
