/* SPDX-License-Identifier: MIT */
/*
 * Exit sites, tried out: in a copy of a real library every function that the
 * choice gives to exit sites gets jumps at its entry and at each of its exits,
 * all at once.  The entry leaves a record by its frame and the exit takes it:
 * each return has its entry, with the return address that is on the stack, and
 * the library works as before.
 *
 * Each library has a process of its own, which a wrong jump may crash.
 */
#include "unit/plan/exits_of.h"

#include <link.h>
#include <sys/prctl.h>

#include "engine/arch.h"
#include "engine/frames.h"
#include "plan/detour.h"
#include "plan/returns.h"
#include "unit/plan/workloads.h"

#define ARENA (96UL << 20)
#define RECORDS 4096

/* What the engine gets: the entry or an exit of a function. */
struct place {
	struct counted *fn;
	bool exit;
	struct ukp_site site;
};

struct counted {
	uint64_t start;
	uint64_t entries, returns, missed, lost;
};

static struct {
	struct exits_of e;
	uint64_t bias;
	uint8_t *arena, *next;
	struct place *place;
	struct counted *fn;
	size_t nr_places, nr_fns, windows, left_out;
} p;

enum kind {
	ALL_RETURN,
	SOME_ARE_LEFT, /* by exceptions and longjmp */
	SABOTAGE,      /* some exits are left alone */
};

static struct ukp_ctl ctl;
static unsigned char *memory;

/* Runs between any two instructions of the library: no vector registers. */
#define ENGINE __attribute__((target("general-regs-only"), no_sanitize("address", "undefined")))

ENGINE static int at_return(struct ukp_hit *hit, uint64_t ctx)
{
	struct counted *fn = (struct counted *)ctx;

	if (hit->flags & UKP_HIT_UNWOUND)
		fn->lost++;
	else if (hit->regs->ip != *(uint64_t *)(hit->regs->sp - 8) || hit->inst->func != fn->start)
		__builtin_trap();
	else
		fn->returns++;
	return 0;
}

ENGINE static int on_probe(struct pt_regs *regs, void *site)
{
	struct place *at = site;
	struct ukp_hit hit;
	struct ukp_instance *inst;
	enum ukp_miss why;
	uint64_t before;

	hit.ctl = &ctl;
	hit.site = &at->site;
	hit.inst = NULL;
	hit.regs = regs;
	hit.tsc = ukp_arch_clock();
	hit.cpu = 0;
	hit.flags = 0;
	if (at->exit) {
		before = at->fn->returns;
		ukp_exit_hit(&hit, (uint64_t)at->fn);
		at->fn->missed += at->fn->returns == before;
		return 0;
	}
	at->fn->entries++;
	inst = ukp_frame_get(&hit, at_return, (uint64_t)at->fn, &why);
	if (inst)
		ukp_frame_hook(&hit, inst);
	else
		at->fn->lost++;
	return 0;
}

static bool make_memory(void)
{
	const uint64_t off = (sizeof(struct ukp_priv) + 63) & ~63ull;
	const uint64_t size = off + ukp_frames_size(RECORDS);
	struct ukp_priv *priv;

	memory = calloc(1, size + 64);
	if (!memory)
		return false;
	priv = (struct ukp_priv *)(((uint64_t)memory + 63) & ~63ull);
	priv->alive = 1;
	priv->off_frames = off;
	ukp_frames_init((struct ukp_frames *)((char *)priv + off), RECORDS);
	ctl.priv = (uint64_t)priv;
	for (uint64_t down = ARENA + (16UL << 20); down < (1UL << 30); down += 16UL << 20) {
		void *at = (void *)((p.bias - down) & ~0xfffUL);

		p.arena = mmap(at, ARENA, PROT_READ | PROT_WRITE | PROT_EXEC,
		               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		               -1, 0);
		if (p.arena == at)
			break;
	}
	p.next = p.arena;
	return p.arena != MAP_FAILED;
}

static const uint8_t *code_at(uint64_t addr, size_t *avail)
{
	for (size_t i = 0; i < p.e.m.nr_code; i++) {
		const struct plan_code *c = &p.e.m.code[i];

		if (addr - c->addr >= c->size)
			continue;
		*avail = c->size - (size_t)(addr - c->addr);
		if (*avail > PLAN_WINDOW_LONG)
			*avail = PLAN_WINDOW_LONG;
		return c->bytes + (addr - c->addr);
	}
	return NULL;
}

static uint64_t new_place(struct counted *fn, uint64_t addr, bool exit)
{
	struct place *at = &p.place[p.nr_places++];

	at->fn = fn;
	at->exit = exit;
	at->site.addr = addr;
	return (uint64_t)at;
}

/* A jump at addr for those of the function's places that its window has. */
static bool plant(struct counted *fn, const struct plan_function *f, uint64_t addr)
{
	static struct plan_detour d;
	const struct plan_way_out *w = plan_exits_ways(p.e.x, f);
	struct plan_window_request wr = { .targets = p.e.targets, .addr = addr };
	struct plan_detour_request dr = { .addr = addr + p.bias, .engine = (uint64_t)on_probe };
	struct plan_window win;

	dr.form = (struct plan_form){ PLAN_SAVE_ALL, false, false, false };
	wr.code = code_at(addr, &wr.avail);
	if (!plan_window(&wr, &win))
		return false;
	for (uint32_t i = 0; i < f->nr_exits; i++)
		while (w[i].window == addr && addr + win.len <= w[i].addr)
			if (!plan_window_extend(&wr, &win))
				return false;
	for (unsigned int k = 0; k < win.nr; k++) {
		const uint64_t at = addr + win.insn[k].off;

		for (uint32_t i = 0; i < f->nr_exits; i++) {
			if (w[i].addr != at || w[i].window != addr)
				continue;
			dr.probes |= (uint8_t)(1 << k);
			dr.site[k] = new_place(fn, at, true);
		}
		/* A function of one instruction: its entry is its exit. */
		if (at == f->entry && dr.site[k])
			return false;
		if (at == f->entry) {
			dr.probes |= 1;
			dr.site[0] = new_place(fn, f->entry, false);
		}
	}
	dr.code = wr.code;
	dr.window = &win;
	dr.buf = (uint64_t)p.next;
	if (plan_detour(&dr, &d))
		return false;
	memcpy(p.next, d.code, d.d.size);
	p.next += d.d.size;
	memcpy((void *)(addr + p.bias), d.d.jump, PLAN_JUMP_SIZE);
	p.windows++;
	return true;
}

/* Is it a part of another one, whose exits are its exits? */
static bool is_taken_in(const struct plan_function *f, const struct plan_function *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct plan_range *r = plan_exits_body(p.e.x, &all[i]);

		for (uint32_t k = 0; all[i].start != f->start && k < all[i].nr_ranges; k++)
			if (r[k].start == f->start)
				return true;
	}
	return false;
}

/* By the choice, and not in one instruction. */
static bool wants(const struct plan_function *f)
{
	struct plan_return_request req = { .fn = f, .entry = exits_entry(&p.e, f->entry) };
	struct plan_return r;

	return plan_return(&req, &r) && r.by == PLAN_BY_EXIT && r.why == PLAN_RETURN_FEW &&
	       !req.entry && plan_exits_ways(p.e.x, f)->addr != f->entry;
}

static void plant_function(const struct plan_function *f, enum kind kind)
{
	const struct plan_way_out *w = plan_exits_ways(p.e.x, f);
	struct counted *fn = &p.fn[p.nr_fns++];

	fn->start = f->entry;
	if (!plant(fn, f, f->entry))
		abort();
	for (uint32_t i = 0; i < f->nr_exits; i++) {
		bool again = w[i].window == f->entry;

		for (uint32_t k = 0; k < i; k++)
			again |= w[k].window == w[i].window;
		if (again || (kind == SABOTAGE && fn->start % 7 == 0))
			continue;
		if (!plant(fn, f, w[i].window))
			abort();
	}
}

static void plant_all(enum kind kind)
{
	size_t n, ways = 0;
	const struct plan_function *f = plan_exits_all(p.e.x, &n);

	for (size_t i = 0; i < n; i++)
		ways += f[i].nr_exits;
	p.fn = calloc(n, sizeof(*p.fn));
	p.place = calloc(n + ways, sizeof(*p.place));
	if (!p.fn || !p.place)
		abort();
	for (size_t i = 0; i < n; i++)
		if (wants(&f[i]) && !is_taken_in(&f[i], f, n))
			plant_function(&f[i], kind);
		else
			p.left_out++;
}

/* Records of calls that are on their way, or were left for good. */
static uint64_t still_in(void)
{
	struct ukp_priv *priv = (struct ukp_priv *)ctl.priv;
	const struct ukp_frames *t = (struct ukp_frames *)((char *)priv + priv->off_frames);
	uint64_t n = 0;

	for (uint32_t i = 0; i <= t->mask; i++)
		for (int k = 0; k < UKP_FRAMES_WORDS; k++)
			n += t->bucket[i].word[k] != 0;
	return n;
}

static bool make_writable(void)
{
	for (size_t i = 0; i < p.e.m.nr_code; i++) {
		const struct plan_code *c = &p.e.m.code[i];
		uint64_t from = (c->addr + p.bias) & ~0xfffUL, to = c->addr + c->size + p.bias;

		if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC))
			return false;
	}
	return true;
}

/* In a child; 0: all is well. */
static int try_library(const char *path, void (*work)(void *), enum kind kind)
{
	uint64_t before, entries = 0, returns = 0, missed = 0, lost = 0, in;
	size_t called = 0, uneven = 0;
	struct link_map *map;
	void *h;

	prctl(PR_SET_DUMPABLE, 0);
	h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h || dlinfo(h, RTLD_DI_LINKMAP, &map) || !exits_of(&p.e, path))
		return 2;
	p.bias = map->l_addr;
	if (!make_memory() || !make_writable())
		return 3;
	work(h);
	work_sum = 0;
	work(h);
	before = work_sum;
	plant_all(kind);
	work_sum = 0;
	work(h);
	for (size_t i = 0; i < p.nr_fns; i++) {
		const struct counted *c = &p.fn[i];

		called += c->entries > 0;
		uneven += c->entries != c->returns;
		entries += c->entries;
		returns += c->returns;
		missed += c->missed;
		lost += c->lost;
	}
	in = still_in();
	printf("  %zu functions by exit sites (%zu not), %zu jumps; %zu called, %lu entries, %lu "
	       "returns, %lu without an entry, %lu without an exit, %lu left behind: %s\n",
	       p.nr_fns, p.left_out, p.windows, called, entries, returns, missed, lost, in,
	       work_sum == before ? "identical" : "DIFFERENT");
	if (work_sum != before || !called || missed || entries != returns + lost + in)
		return 1;
	return kind == SOME_ARE_LEFT ? !lost || in > 100 : uneven != 0;
}

static void try_in_child(const char *path, void (*work)(void *), enum kind kind)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int r = try_library(path, work, kind);

		fflush(stdout);
		_exit(r);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != (kind == SABOTAGE ? 1 << 8 : 0))
		fail_msg("%s: status %#x", path, status);
}

static void try_copy(const char *path, void (*work)(void *), enum kind kind)
{
	const char *copy = help_path("library.so");

	if (access(path, R_OK)) {
		print_message("%s is not installed: left out\n", path);
		return;
	}
	assert_true(help_run("cp %s %s", path, copy));
	printf("%s\n", path);
	try_in_child(copy, work, kind);
}

#define LIB "/usr/lib/x86_64-linux-gnu/"

static void each_return_of_zlib_has_its_entry(void **state)
{
	try_copy(LIB "libz.so.1", work_zlib, ALL_RETURN);
}

static void each_return_of_sqlite_has_its_entry(void **state)
{
	try_copy(LIB "libsqlite3.so.0", work_sqlite, ALL_RETURN);
}

static void each_return_of_libcrypto_has_its_entry(void **state)
{
	try_copy(LIB "libcrypto.so.3", work_crypto, ALL_RETURN);
}

static void work_leaves(void *h)
{
	WORK_FN(h, long, run, long);

	for (long i = 0; i < 100; i++) {
		long r = run(i % 9);

		work_add(&r, sizeof(r));
	}
}

static void calls_that_never_come_back_leave_nothing_behind(void **state)
{
	static const char *const how[] = {
		"gcc -O1 -fno-asynchronous-unwind-tables",
		"gcc -O2",
		"clang -O1",
		"clang -O2",
		"g++ -x c++",
		"g++ -O2 -x c++",
		"clang++ -x c++",
		"clang++ -O2 -x c++",
	};

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		const char *path = help_path("leaves.so");

		assert_true(help_run("%s -w -fPIC -shared tests/targets/leaves.%s -o %s", how[i],
		                     strstr(how[i], "++") ? "cc" : "c", path));
		printf("%s\n", how[i]);
		try_in_child(path, work_leaves, SOME_ARE_LEFT);
	}
}

/* A test that never fails proves nothing. */
static void an_exit_without_a_jump_is_noticed(void **state)
{
	try_copy(LIB "libsqlite3.so.0", work_sqlite, SABOTAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_return_of_zlib_has_its_entry),
		cmocka_unit_test(each_return_of_sqlite_has_its_entry),
		cmocka_unit_test(each_return_of_libcrypto_has_its_entry),
		cmocka_unit_test(calls_that_never_come_back_leave_nothing_behind),
		cmocka_unit_test(an_exit_without_a_jump_is_noticed),
	};

	return cmocka_run_group_tests(tests, help_setup, help_teardown);
}
