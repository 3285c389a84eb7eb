/* SPDX-License-Identifier: MIT */
/*
 * Our own process as a target: the same memory that a broker brings into
 * another one, made by plain calls.  Nothing is ever writable and executable:
 * r-x pages are written through /proc/self/mem.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/arch.h"
#include "engine/frames.h"
#include "engine/rethook.h"
#include "engine/signal.h"
#include "lib/lib.h"
#include "patch/area.h"

#define FEW_INSTANCES AREA_STUBS_PER_CHUNK /* where stubs need pages of their own */

enum { SYNC_CORE = 1 << 5, REGISTER_SYNC_CORE = 1 << 6 }; /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_* */

static struct sym_proc *own_symbols;
static struct slots *slots;
static bool unsynced; /* a byte of text was written, and not all cores have seen it for sure */

int own_sym(struct sym_proc **ret, struct err *err)
{
	int r = own_symbols ? sym_refresh(own_symbols, err) : sym_open(&own_symbols, getpid(), err);

	*ret = own_symbols;
	return r;
}

struct sym_proc *own_sym_last(void)
{
	return own_symbols;
}

struct slots *own_slots(void)
{
	return slots;
}

/*
 * Opened each time, or for a batch: a descriptor kept over fork would write the
 * parent's memory.  (A child that is born in a batch never comes here.)
 */
static int batch_fd = -1;
static bool batch_copies; /* reads are plain, our fault handler catches what goes away */

static int own_mem(uint64_t addr, void *buf, size_t len, bool write)
{
	int fd = batch_fd, ret = 0;
	ssize_t n;

	if (fd < 0)
		fd = open("/proc/self/mem", (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write ? pwrite(fd, buf, len, (off_t)addr) : pread(fd, buf, len, (off_t)addr);
	if (n != (ssize_t)len)
		ret = n < 0 ? -errno : -EIO;
	if (fd != batch_fd)
		close(fd);
	return ret;
}

void own_sync(void)
{
	/* Where it is missing (before 4.16), one byte is seen whole all the same. */
	if (unsynced)
		syscall(SYS_membarrier, SYNC_CORE, 0, 0);
	unsynced = false;
}

/* Does our handler get this thread's faults? */
static bool catches_faults(void)
{
	sigset_t blocked;

	return ukp_lib_ctl && (ukp_lib_ctl->taken & 1ull << (SIGSEGV - 1)) &&
	       (ukp_lib_ctl->taken & 1ull << (SIGBUS - 1)) &&
	       !pthread_sigmask(SIG_SETMASK, NULL, &blocked) && !sigismember(&blocked, SIGSEGV) &&
	       !sigismember(&blocked, SIGBUS);
}

void own_batch_begin(void)
{
	batch_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	batch_copies = catches_faults();
}

void own_batch_end(void)
{
	if (batch_fd >= 0)
		close(batch_fd);
	batch_fd = -1;
	batch_copies = false;
	own_sync();
}

int own_read(uint64_t addr, void *buf, size_t len)
{
	/* What may be executed only is left to the kernel, too. */
	if (batch_copies && !ukp_arch_copy(buf, (void *)addr, len))
		return 0;
	return own_mem(addr, buf, len, false);
}

int own_fill(uint64_t addr, const void *buf, size_t len)
{
	return own_mem(addr, (void *)(uintptr_t)buf, len, true);
}

int own_write(uint64_t addr, uint8_t byte)
{
	unsynced = true;
	return own_mem(addr, &byte, 1, true);
}

static int poke_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = pread(*(int *)arg, buf, len, (off_t)addr);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

static int poke_write(void *arg, uint64_t addr, const void *buf, size_t len)
{
	ssize_t n = pwrite(*(int *)arg, buf, len, (off_t)addr);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

static int poke_sync(void *arg)
{
	return syscall(SYS_membarrier, SYNC_CORE, 0, 0) ? -errno : 0;
}

static int poke_divert(void *arg, uint64_t addr, uint64_t to)
{
	return site_divert(addr, to);
}

bool own_can_poke(void)
{
	static int can = -1;

	if (can < 0)
		can = !poke_sync(NULL);
	return can;
}

int own_poke(struct poke *v, size_t n)
{
	static const struct poke_ops ops = { poke_read, poke_write, poke_sync, poke_divert };
	int fd = batch_fd, ret = 0;
	size_t i;

	if (fd < 0)
		fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		ret = -errno;
	for (i = 0; i < n && ret; i++)
		v[i].error = ret;
	if (ret)
		return ret;
	/* An int3 that is one end of a change must have been seen. */
	own_sync();
	ret = poke_text(&ops, &fd, v, n);
	if (fd != batch_fd)
		close(fd);
	return ret;
}

uint32_t own_alloc(size_t size)
{
	uint32_t off = ukp_lib_ctl->next_free;

	size = (size + 15) & ~15ul;
	if (off + size > UKP_CTL_SIZE)
		return 0;
	ukp_lib_ctl->next_free = off + size;
	return off;
}

static int record(struct ukp_ctl *ctl, void *addr, uint64_t len, enum ukp_map_kind kind)
{
	if (ctl->nr_mappings == UKP_NR_MAPPINGS)
		return -ENOSPC;
	ctl->mapping[ctl->nr_mappings] =
		(struct ukp_mapping){ .addr = (uint64_t)addr, .len = len, .kind = kind };
	/* The fault handler reads it meanwhile. */
	__atomic_store_n(&ctl->nr_mappings, ctl->nr_mappings + 1, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t map_slots(void *arg, uint64_t hint, uint64_t len, struct err *err)
{
	struct lib_arena *a = calloc(1, sizeof(*a) + len / UKP_SLOT_SIZE * sizeof(*a->site));
	void *p;

	if (!a) {
		err_set(err, -ENOMEM, "out of memory");
		return 0;
	}
	p = mmap((void *)hint, len, PROT_READ | PROT_EXEC,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != (void *)hint || record(ukp_lib_ctl, p, len, UKP_MAP_SLOTS)) {
		err_set(err, -ENOSPC, "cannot map executable memory at %#lx: %s", hint,
		        p == MAP_FAILED ? strerror(errno) : "no room");
		if (p != MAP_FAILED)
			munmap(p, len);
		free(a);
		return 0;
	}
	a->addr = hint;
	a->len = len;
	a->next = ukp_lib_arenas;
	__atomic_store_n(&ukp_lib_arenas, a, __ATOMIC_RELEASE);
	return hint;
}

static void *map_private(uint64_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int make_priv(struct ukp_ctl *ctl, struct err *err)
{
	struct area_piece out[AREA_LEFT_OUT];
	struct ukp_objpool pool;
	struct ukp_priv priv;
	unsigned int i;
	char *p;

	area_layout(&priv, &pool, ctl->nr_instances);
	priv.alive = (uint64_t)getpid();
	area_left_out(&priv, out);
	p = map_private(priv.size, PROT_READ | PROT_WRITE);
	if (!p)
		return err_set(err, -ENOMEM, "cannot map memory: %s", strerror(errno));
	ctl->priv = (uint64_t)p;
	record(ctl, p, priv.size, UKP_MAP_PRIV);
	if (madvise(p, AREA_PAGE, AREA_WIPEONFORK))
		return err_set(err, -errno,
		               "the kernel cannot wipe a page on fork (needs Linux 4.14)");
	for (i = 0; i < AREA_LEFT_OUT; i++)
		madvise((out[i].priv ? p : (char *)ctl) + out[i].off, out[i].len, MADV_DONTDUMP);
	memcpy(p, &priv, sizeof(priv));
	memcpy(p + priv.off_pool, &pool, sizeof(pool));
	return 0;
}

uint32_t own_records(void)
{
	return ukp_frames_buckets(AREA_FRAMES) * UKP_FRAMES_WORDS;
}

int own_frames(struct err *err)
{
	struct ukp_priv *priv = (struct ukp_priv *)ukp_lib_ctl->priv;
	uint64_t size = area_page_up(ukp_frames_size(AREA_FRAMES));
	char *p;

	if (priv->off_frames)
		return 0;
	p = map_private(size, PROT_READ | PROT_WRITE);
	if (!p)
		return err_set(err, -ENOMEM, "cannot map memory: %s", strerror(errno));
	madvise(p, size, MADV_DONTDUMP);
	ukp_frames_init((struct ukp_frames *)p, AREA_FRAMES);
	/* Release: who finds it finds it ready.  It is a mapping of its own, at that distance. */
	__atomic_store_n(&priv->off_frames, (uint64_t)p - (uint64_t)priv, __ATOMIC_RELEASE);
	return 0;
}

/* One file for all stubs; fewer stubs in pages of their own where that is forbidden. */
static int map_stubs(struct ukp_ctl *ctl, char *base, const void *image)
{
	int fd = (int)syscall(SYS_memfd_create, "ukprobes-stubs", 0x11); /* CLOEXEC, EXEC */
	uint32_t i;
	int ret = -1;

	if (fd < 0)
		fd = (int)syscall(SYS_memfd_create, "ukprobes-stubs", 1);
	if (fd >= 0 && pwrite(fd, image, AREA_STUB_CHUNK, 0) == AREA_STUB_CHUNK)
		ret = 0;
	for (i = 0; i < AREA_CHUNKS && !ret; i++)
		if (mmap(base + (uint64_t)i * AREA_STUB_CHUNK, AREA_STUB_CHUNK,
		         PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			ret = -1;
	if (fd >= 0)
		close(fd);
	if (!ret)
		return 0;
	ctl->nr_instances = FEW_INSTANCES;
	if (mmap(base, AREA_STUB_CHUNK, PROT_READ | PROT_EXEC,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	return own_fill((uint64_t)base, image, AREA_STUB_CHUNK);
}

static int make_stubs(struct ukp_ctl *ctl, struct err *err)
{
	uint64_t size = (uint64_t)AREA_CHUNKS * AREA_STUB_CHUNK;
	char *base = map_private(size, PROT_NONE);
	unsigned char *image = malloc(AREA_STUB_CHUNK);
	int ret = -ENOMEM;

	if (base)
		record(ctl, base, size, UKP_MAP_STUBS);
	if (base && image) {
		area_stubs(image, (uint64_t)ukp_return_entry);
		ret = map_stubs(ctl, base, image);
	}
	free(image);
	if (ret)
		return err_set(err, ret, "cannot map executable memory: %s", strerror(-ret));
	ctl->stubs = (uint64_t)base;
	ctl->stub_chunk = AREA_STUB_CHUNK;
	ctl->stubs_per_chunk = AREA_STUBS_PER_CHUNK;
	return 0;
}

static bool blocks_sigtrap(const char *tid, bool *runs)
{
	unsigned long long blocked = 0;
	char path[64], line[256], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "State: %c", &state) != 1)
			sscanf(line, "SigBlk: %llx", &blocked);
	if (f)
		fclose(f);
	*runs = state == 'R';
	return blocked & 1ull << (UKP_SIGTRAP - 1);
}

/*
 * libc starts a thread with all signals blocked: one that stays so is meant.  On a
 * busy machine a new one waits long for a CPU, but asleep it is at home.
 */
static bool keeps_blocking(const char *tid)
{
	const struct timespec rest = { .tv_nsec = 1000000 };
	int asleep = 0, tries;
	bool runs;

	for (tries = 0; tries < 10000 && asleep < 200; tries++) {
		if (!blocks_sigtrap(tid, &runs))
			return false;
		asleep += !runs;
		nanosleep(&rest, NULL);
	}
	return true;
}

/* SIGTRAP must reach us in every thread, and nobody else may want it. */
static int check_signals(struct err *err)
{
	struct ukp_sigaction old = { 0 };
	struct dirent *e;
	int ret = 0;
	DIR *d;

	syscall(SYS_rt_sigaction, UKP_SIGTRAP, NULL, &old, 8);
	if (old.handler != UKP_SIG_DFL)
		return err_set(err, -EBUSY,
		               "SIGTRAP is handled or ignored already (by the program, a debugger "
		               "or another tool): probes need it");
	d = opendir("/proc/self/task");
	while (d && !ret && (e = readdir(d)))
		if (e->d_name[0] != '.' && keeps_blocking(e->d_name))
			ret = err_set(err, -EBUSY,
			              "thread %s blocks SIGTRAP: a probe would kill it", e->d_name);
	if (d)
		closedir(d);
	return ret;
}

static int take_signals(struct ukp_ctl *ctl, struct err *err)
{
	struct ukp_sigaction sa;
	int sig;

	for (sig = 1; sig < UKP_NR_SIGNALS; sig++) {
		if (!(UKP_SIGNALS & 1ull << (sig - 1)))
			continue;
		if (syscall(SYS_rt_sigaction, sig, NULL, &sa, 8))
			return err_set(err, -errno, "cannot read signal %d", sig);
		*ukp_old_action(ctl, sig) = sa;
		sa.flags = area_signal_flags(sig, &sa);
		sa.handler = (uint64_t)(sig == UKP_SIGTRAP ? ukp_trap_entry : ukp_fault_entry);
		sa.restorer = (uint64_t)ukp_restorer;
		sa.mask = 0;
		ctl->taken |= 1ull << (sig - 1);
		if (syscall(SYS_rt_sigaction, sig, &sa, NULL, 8))
			return err_set(err, -errno, "cannot handle signal %d: %s", sig,
			               strerror(errno));
	}
	return 0;
}

static void undo(struct ukp_ctl *ctl)
{
	uint32_t i;

	for (i = 0; i < ctl->nr_mappings; i++)
		munmap((void *)ctl->mapping[i].addr, ctl->mapping[i].len);
	munmap(ctl, UKP_CTL_SIZE);
	slots_close(slots);
	slots = NULL;
}

static int make_ctl(struct ukp_ctl **ret, struct err *err)
{
	struct ukp_ctl *ctl = map_private(UKP_CTL_SIZE, PROT_READ | PROT_WRITE);

	if (!ctl)
		return err_set(err, -ENOMEM, "cannot map memory: %s", strerror(errno));
	ctl->magic = UKP_CTL_MAGIC;
	ctl->version = UKP_CTL_VERSION;
	ctl->self = (uint64_t)ctl;
	ctl->size = UKP_CTL_SIZE;
	ctl->flags = area_cpu_flags() | UKP_CTL_OWN;
	ctl->nr_instances = AREA_INSTANCES;
	ctl->restorer = (uint64_t)ukp_restorer;
	ctl->next_free = (uint32_t)area_page_up(sizeof(*ctl));
	*ret = ctl;
	return 0;
}

int own_init(struct err *err)
{
	static int broken; /* why signals could not be taken: it stays so */
	struct ukp_ctl *ctl = NULL;
	int ret;

	if (ukp_lib_ctl)
		return broken ? err_set(err, broken, "the engine could not take its signals") : 0;
	ret = check_signals(err);
	if (!ret)
		ret = make_ctl(&ctl, err);
	if (ret)
		return ret;
	syscall(SYS_membarrier, REGISTER_SYNC_CORE, 0, 0);
	vec_init();
	/* libc's TLS is static: at one distance from each thread's pointer. */
	ukp_lib_errno_off = (int64_t)((uint64_t)__errno_location() - ukp_arch_thread());
	ret = make_stubs(ctl, err);
	if (!ret)
		ret = make_priv(ctl, err);
	if (!ret && slots_open(&slots, own_symbols, map_slots, NULL))
		ret = err_set(err, -ENOMEM, "out of memory");
	if (ret) {
		undo(ctl);
		return ret;
	}
	/* From here on a hit is possible, and nothing is undone. */
	__atomic_store_n(&ukp_lib_ctl, ctl, __ATOMIC_RELEASE);
	broken = take_signals(ctl, err);
	return broken ? broken : site_plant_internal(err);
}
