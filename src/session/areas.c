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

/* First, for the runner in it makes the rest cheap. */
static int bring_agent(struct target *t, struct err *err)
{
	int ret;

	/* The control area comes later, but goes last. */
	t->own.nr_mappings = 1;
	t->own.text = target_map(t, 0, area_page_up(t->image_len), PROT_READ | PROT_EXEC,
	                         MAP_PRIVATE | MAP_ANONYMOUS, -1, UKP_MAP_TEXT, 0, err);
	if (!t->own.text)
		return err->code;
	ret = inject_write(t->inject, t->own.text, t->image, t->image_len);
	if (ret)
		return err_set(err, ret,
		               "cannot write code into process %d: %s; does the kernel restrict "
		               "/proc/PID/mem (proc_mem.force_override)?",
		               t->pid, strerror(-ret));
	inject_use_runner(t->inject, t->own.text + t->own.runner);
	return 0;
}

/* What the areas are made of, in the order of the calls. */
struct areas {
	uint64_t priv_size;
	long ctl_file, stubs_file; /* descriptors there */
	uint64_t priv, stubs, ctl;
};

#define STUBS_SIZE ((uint64_t)AREA_CHUNKS * AREA_STUB_CHUNK)

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

/* The files, and address space that needs none. */
static int make_files(struct target *t, struct areas *a, struct err *err)
{
	static const char name[2][16] = { "ukprobes-ctl", "ukprobes-stubs" };
	uint64_t str = inject_scratch(t->inject, sizeof(name) + 8 + sizeof(stack_t));
	uint64_t mode = str + sizeof(name), stack = mode + 8;
	const long anon = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	struct inject_call v[] = {
		{ SYS_memfd_create, { str, target_memfd_flags() }, -1 },
		{ SYS_memfd_create, { str + sizeof(name[0]), target_memfd_flags() }, -1 },
		{ SYS_mmap, { 0, a->priv_size, PROT_READ | PROT_WRITE, anon, -1 }, -1 },
		{ SYS_mmap, { 0, STUBS_SIZE, PROT_NONE, anon, -1 }, -1 },
		{ SYS_prctl, { PR_GET_TSC, mode }, -1 },
		{ SYS_sigaltstack, { 0, stack }, -1 },
	};
	int ret = str ? inject_write(t->inject, str, name, sizeof(name)) : -EIO;

	if (!ret)
		ret = inject_calls(t->inject, v, 6);
	if (ret)
		return err_set(err, ret, "cannot make memory in process %d: %s", t->pid,
		               strerror(-ret));
	look_at_altstack(t, &v[5], stack);
	a->ctl_file = v[0].ret;
	a->stubs_file = v[1].ret;
	if (v[2].ret > 0)
		target_mapped(t, &t->own.mapping[t->own.nr_mappings++], v[2].ret, a->priv_size,
		              UKP_MAP_PRIV, 0);
	if (v[3].ret > 0)
		target_mapped(t, &t->own.mapping[t->own.nr_mappings++], v[3].ret, STUBS_SIZE,
		              UKP_MAP_STUBS, 0);
	a->priv = v[2].ret;
	a->stubs = v[3].ret;
	ret = v[2].ret < 0 ? (int)v[2].ret : v[3].ret < 0 ? (int)v[3].ret : 0;
	return ret ? err_set(err, ret, "cannot map memory in process %d: %s", t->pid,
	                     strerror(-ret))
	           : check_clock(t, &v[4], mode, err);
}

/* The files mapped and closed; close: whatever became of the rest. */
static int map_files(struct target *t, struct areas *a, bool fine, struct err *err)
{
	struct inject_call v[4 + AREA_CHUNKS], *p = v;
	uint32_t i;
	int ret;

	if (fine) {
		*p++ = (struct inject_call){ SYS_mmap,
			                     { 0, UKP_CTL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			                       a->ctl_file },
			                     -1 };
		*p++ = (struct inject_call){ SYS_madvise,
			                     { a->priv, AREA_PAGE, AREA_WIPEONFORK },
			                     -1 };
		for (i = 0; i < AREA_CHUNKS; i++)
			*p++ = (struct inject_call){ SYS_mmap,
				                     { a->stubs + (uint64_t)i * AREA_STUB_CHUNK,
				                       AREA_STUB_CHUNK, PROT_READ | PROT_EXEC,
				                       MAP_PRIVATE | MAP_FIXED, a->stubs_file },
				                     -1 };
	}
	if (a->ctl_file >= 0)
		*p++ = (struct inject_call){ SYS_close, { a->ctl_file }, -1 };
	if (a->stubs_file >= 0)
		*p++ = (struct inject_call){ SYS_close, { a->stubs_file }, -1 };
	ret = inject_calls(t->inject, v, p - v);
	if (!fine)
		return err->code;
	if (!ret && v[0].ret > 0)
		target_mapped(t, &t->own.mapping[0], v[0].ret, UKP_CTL_SIZE, UKP_MAP_CTL, 0);
	for (i = 0; i < 2 + AREA_CHUNKS && !ret; i++)
		if (v[i].ret < 0 && v[i].ret > -4096)
			ret = (int)v[i].ret;
	a->ctl = v[0].ret;
	if (!ret)
		return 0;
	return i == 2 ? err_set(err, ret,
	                        "the kernel cannot wipe a page on fork (needs Linux 4.14)")
	              : err_set(err, ret, "cannot map memory in process %d: %s", t->pid,
	                        strerror(-ret));
}

static int bring_areas(struct target *t, struct err *err)
{
	struct areas a = { .ctl_file = -1, .stubs_file = -1 };
	struct ukp_frames frames;
	struct ukp_objpool pool;
	struct ukp_priv priv;
	int ret;

	area_layout(&priv, &pool, AREA_INSTANCES);
	area_frames(&priv, &frames, AREA_FRAMES);
	a.priv_size = priv.size;
	ret = make_files(t, &a, err);
	if (!ret) {
		t->ctl_fd = target_memfd_open(t, a.ctl_file, UKP_CTL_SIZE, err);
		if (t->ctl_fd >= 0)
			t->stubs_fd = target_memfd_open(t, a.stubs_file, AREA_STUB_CHUNK, err);
		ret = t->ctl_fd < 0 || t->stubs_fd < 0 ? err->code : 0;
	}
	ret = map_files(t, &a, !ret, err);
	if (ret)
		return ret;
	t->own.self = a.ctl;
	t->own.priv = a.priv;
	t->own.nr_instances = AREA_INSTANCES;
	t->own.stubs = a.stubs;
	t->own.stub_chunk = AREA_STUB_CHUNK;
	t->own.stubs_per_chunk = AREA_STUBS_PER_CHUNK;
	return 0;
}

/* Ours of the control area; from then on whoever finds it may cure by it. */
static int open_ctl(struct target *t, struct err *err)
{
	struct ukp_ctl *ctl;

	ctl = mmap(NULL, UKP_CTL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->ctl_fd, 0);
	if (ctl == MAP_FAILED)
		return err_set(err, -errno, "cannot map the control area: %s", strerror(errno));
	t->ctl = ctl;
	t->own.next_free = area_page_up(sizeof(*ctl));
	memcpy(ctl, &t->own, sizeof(t->own));
	t->own.magic = UKP_CTL_MAGIC;
	__atomic_store_n(&ctl->magic, UKP_CTL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Of an area that never was whole: nothing else knows what is there. */
static void take_back(struct target *t)
{
	uint32_t i;

	inject_use_runner(t->inject, 0);
	for (i = 0; i < t->own.nr_mappings; i++)
		if (t->own.mapping[i].kind != UKP_MAP_FREE)
			inject_syscall(t->inject, SYS_munmap, t->own.mapping[i].addr,
			               t->own.mapping[i].len, 0, 0, 0, 0);
	t->own.nr_mappings = 0;
}

int target_bring(struct target *t, struct err *err)
{
	int ret = bring_agent(t, err);

	if (!ret)
		ret = bring_areas(t, err);
	if (!ret)
		ret = open_ctl(t, err);
	if (ret)
		take_back(t);
	return ret;
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
		n = pwrite(t->stubs_fd, p, AREA_STUB_CHUNK, 0);
	}
	free(p);
	close(t->stubs_fd);
	t->stubs_fd = -1;
	return n == AREA_STUB_CHUNK ? 0 : -ENOMEM;
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
	if (fill_stubs(t))
		return err_set(err, -ENOMEM, "no memory for the return stubs of process %d",
		               t->pid);
	ready_internal(t);
	return 0;
}
