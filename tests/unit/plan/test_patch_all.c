/* SPDX-License-Identifier: MIT */
/*
 * The target set, tried out: in a copy of a real library every window that may
 * have a jump gets one, all at once, then the library works as before.  Once
 * with a probe at each window and once with one at each covered instruction,
 * the windows beginning elsewhere.
 *
 * Each library has a process of its own, which a wrong jump may crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <link.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "plan/detour.h"
#include "unit/plan/module_facts.h"
#include "unit/plan/workloads.h"

#define ARENA (192UL << 20)

struct patched {
	struct facts f;
	struct plan_targets *t;
	uint64_t bias;
	uint8_t *arena, *next;
	uint64_t *counts;
	size_t windows, refused, bytes, nr_counts, longer;
	int shift;
	bool control; /* the windows that something leads into, and no others */
};

enum round { WINDOWS, INSNS, CONTROL };

/* Counts at *site and clobbers what a C function may. */
int count_and_clobber(struct pt_regs *regs, void *site);
__asm__(".text\n"
        ".globl count_and_clobber\n"
        "count_and_clobber:\n"
        "	incq (%rsi)\n"
        "	mov $-1, %rcx; mov %rcx, %rdx; mov %rcx, %rsi; mov %rcx, %rdi\n"
        "	mov %rcx, %r8; mov %rcx, %r9; mov %rcx, %r10; mov %rcx, %r11\n"
        "	push %rcx; push %rcx; lea 16(%rsp), %rsp\n"
        "	xor %eax, %eax\n"
        "	stc\n"
        "	ret\n");

/* Somewhere below the library, in reach of it. */
static bool make_arena(struct patched *p)
{
	for (uint64_t down = ARENA + (16UL << 20); down < (1UL << 30); down += 16UL << 20) {
		void *at = (void *)((p->bias - down) & ~0xfffUL);

		p->arena = mmap(at, ARENA, PROT_READ | PROT_WRITE | PROT_EXEC,
		                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		                -1, 0);
		if (p->arena == at)
			break;
	}
	p->next = p->arena;
	p->counts = calloc(2000000, 8);
	return p->arena != MAP_FAILED && p->counts;
}

/* A jump at a link-time address, if it may be there; returns what it takes up. */
static unsigned int patch(struct patched *p, uint64_t addr)
{
	static struct plan_detour d;
	uint8_t code[PLAN_WINDOW_LONG];
	struct plan_window w;
	struct plan_window_request wr = { .targets = p->t, .code = code, .addr = addr };
	struct plan_detour_request dr = {
		.code = code,
		.addr = addr + p->bias,
		.window = &w,
		.buf = (uint64_t)p->next,
		.engine = (uint64_t)count_and_clobber,
		.form = { addr & 16 ? PLAN_SAVE_CALL : PLAN_SAVE_ALL, addr & 32, false, false },
		.probes = p->shift ? 0xff : 1,
	};

	wr.avail = facts_read(&p->f, addr, code, sizeof(code));
	plan_window(&wr, &w);
	if (w.why != (p->control ? PLAN_WINDOW_TARGET : PLAN_WINDOW_OK))
		return 0;
	while (addr & 64 && !p->control && plan_window_extend(&wr, &w))
		p->longer++;
	for (unsigned int i = 0; i < w.nr; i++)
		dr.site[i] = (uint64_t)&p->counts[p->nr_counts + i];
	if (plan_detour(&dr, &d)) {
		p->refused++;
		return 0;
	}
	p->nr_counts += w.nr;
	memcpy(p->next, d.code, d.d.size);
	p->next += d.d.size;
	p->bytes += d.d.size + plan_detour_size(&d.d);
	memcpy((void *)(addr + p->bias), d.d.jump, PLAN_JUMP_SIZE);
	p->windows++;
	return w.covered;
}

static void patch_all(struct patched *p)
{
	uint64_t done = 0;

	for (size_t i = 0; i < p->f.m.nr_funcs; i++) {
		const struct plan_region *r = plan_targets_region(p->t, p->f.func[i].start);
		uint64_t a;

		if (!r || r->start < done)
			continue;
		a = r->start > done ? r->start : done;
		for (int skip = p->shift; a < r->end; a++) {
			unsigned int n;

			if (!plan_targets_boundary(p->t, a) || skip-- > 0 ||
			    p->next + PLAN_DETOUR_MAX > p->arena + ARENA)
				continue;
			n = patch(p, a);
			if (n)
				a += n - 1;
		}
		done = a > r->end ? a : r->end;
	}
}

static bool make_writable(const struct patched *p)
{
	for (size_t i = 0; i < p->f.m.nr_code; i++) {
		uint64_t from = (p->f.code[i].addr + p->bias) & ~0xfffUL;
		uint64_t to = p->f.code[i].addr + p->f.code[i].size + p->bias;

		if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC))
			return false;
	}
	return true;
}

/* It may as well never end, running in circles or waiting for itself. */
static void limit_time(unsigned int cpu_seconds)
{
	struct rlimit cpu = { cpu_seconds, cpu_seconds };

	setrlimit(RLIMIT_CPU, &cpu);
	alarm(cpu_seconds * 3);
}

/* In a child; 0: all is well. */
static int try_library(const char *path, void (*work)(void *), enum round round)
{
	static struct patched p;
	uint64_t before, hits = 0;
	struct link_map *map;
	size_t executed = 0;
	void *h;

	limit_time(round == CONTROL ? 10 : 300);
	prctl(PR_SET_DUMPABLE, 0);
	h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h || dlinfo(h, RTLD_DI_LINKMAP, &map) || !facts_load(&p.f, path) ||
	    plan_targets_new(&p.t, &p.f.m))
		return 2;
	p.bias = map->l_addr;
	p.shift = round == INSNS;
	p.control = round == CONTROL;
	if (!make_arena(&p) || !make_writable(&p))
		return 3;
	work(h);
	before = work_sum;
	work_sum = 0;
	work(h);
	if (work_sum != before)
		return 4; /* it doesn't do the same twice */
	patch_all(&p);
	work_sum = 0;
	work(h);
	for (size_t i = 0; i < p.nr_counts; i++) {
		executed += p.counts[i] != 0;
		hits += p.counts[i];
	}
	printf("  %zu windows, %zu instructions taken along, %zu KiB with their maps, %zu refused; "
	       "%zu places executed, %lu hits: %s\n",
	       p.windows, p.longer, p.bytes >> 10, p.refused, executed, hits,
	       work_sum == before ? "identical" : "DIFFERENT");
	return work_sum != before || !executed;
}

/* A copy, so that nobody else uses it; gone with the folder. */
static void try_copy(const char *path, void (*work)(void *), enum round first, enum round last)
{
	char command[256], copy[] = "/tmp/ukp-patch-XXXXXX";
	int fd, status;

	if (access(path, R_OK)) {
		printf("skipped %s: not installed\n", path);
		return;
	}
	fd = mkstemp(copy);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cp %s %s", path, copy);
	assert_int_equal(system(command), 0);
	for (enum round round = first; round <= last; round++) {
		static const char *const names[] = { "a probe a window",
			                             "probes at each instruction",
			                             "windows that something leads into" };
		pid_t pid;

		printf("%s, %s\n", path, names[round]);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			int r = try_library(copy, work, round);

			fflush(stdout);
			_exit(r);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!status != (round != CONTROL))
			unlink(copy);
		assert_int_equal(!status, round != CONTROL);
	}
	unlink(copy);
}

#define LIB "/usr/lib/x86_64-linux-gnu/"

static void zlib_works_with_all_of_its_windows_taken(void **state)
{
	try_copy(LIB "libz.so.1", work_zlib, WINDOWS, INSNS);
}

static void sqlite_works_with_all_of_its_windows_taken(void **state)
{
	try_copy(LIB "libsqlite3.so.0", work_sqlite, WINDOWS, INSNS);
}

/* A test that never fails proves nothing: without the target set they do. */
static void sqlite_breaks_where_windows_are_taken_that_something_leads_into(void **state)
{
	try_copy(LIB "libsqlite3.so.0", work_sqlite, CONTROL, CONTROL);
}

static void libcrypto_works_with_all_of_its_windows_taken(void **state)
{
	try_copy(LIB "libcrypto.so.3", work_crypto, WINDOWS, INSNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zlib_works_with_all_of_its_windows_taken),
		cmocka_unit_test(sqlite_works_with_all_of_its_windows_taken),
		cmocka_unit_test(sqlite_breaks_where_windows_are_taken_that_something_leads_into),
		cmocka_unit_test(libcrypto_works_with_all_of_its_windows_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
