/* SPDX-License-Identifier: MIT */
/*
 * What a kprobe of the library costs in the jump form, over a plain call, beside
 * a detour written by hand (bench/floor_jump.S): copies of one function, called
 * in turns by one thread.  All counts must be exact.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/hit/hit.h"
#include "plan/detour.h"
#include "ukprobes/kprobes.h"

#define ROUNDS 401
#define CALLS 1000
#define FLOOR_VEC_ROOM 4096
/*
 * From the function to its detour.  Not a multiple of 16 MiB: Intel's CPUs know branches
 * by the low 24 bits of where they are, and a detour's would be taken for the function's.
 */
#define AWAY ((63 << 20) + (13 << 12))

long work_plain(long a, long b), work_floor(long a, long b), work_floor_vec(long a, long b);
long work_entry(long a, long b), work_novec(long a, long b), work_vec(long a, long b);

void floor_hit(void *regs);
uint32_t floor_vec_mask;

enum row_kind { PLAIN, FLOOR, ENTRY, NOVEC, FLOOR_VEC, VEC, NR_ROWS };

static struct row {
	const char *what;
	long (*fn)(long, long);
	enum row_kind floor;
	double aim;
	volatile unsigned long hits;
	double ns[ROUNDS];
} rows[NR_ROWS] = {
	[PLAIN] = { "plain call", work_plain },
	[FLOOR] = { "floor: flags, 16 registers, a C handler", work_floor },
	[ENTRY] = { "our detour alone, the same handler", work_entry, FLOOR, 1.2 },
	[NOVEC] = { "kprobe, UKP_NOVEC: guard and hit count", work_novec, FLOOR, 1.7 },
	[FLOOR_VEC] = { "floor with xsavec and xrstor", work_floor_vec, FLOOR },
	[VEC] = { "kprobe: vector state saved", work_vec, FLOOR_VEC, 1.2 },
};

static volatile unsigned long floor_hits;

__attribute__((noinline)) void floor_hit(void *regs)
{
	__asm__ volatile("" ::"r"(regs));
	floor_hits++;
}

static int count(struct kprobe *p, struct pt_regs *regs)
{
	(void)p;
	(void)regs;
	rows[NOVEC].hits++;
	return 0;
}

static int count_vec(struct kprobe *p, struct pt_regs *regs)
{
	(void)p;
	(void)regs;
	rows[VEC].hits++;
	return 0;
}

static int entry_hit(struct pt_regs *regs, void *site)
{
	__asm__ volatile("" ::"r"(regs), "r"(site));
	rows[ENTRY].hits++;
	return 0;
}

/* What the library's jumps lead to, with a C function in place of its engine. */
static void plant_entry(void)
{
	static struct plan_detour out;
	const struct plan_window w = {
		.nr = 2, .len = 7, .covered = 7, .insn = { { 0, 4 }, { 4, 3 } }
	};
	unsigned char *fn = (unsigned char *)(uintptr_t)work_entry;
	unsigned char *page = (unsigned char *)((uintptr_t)fn & ~4095ul);
	unsigned char *near = mmap(page + AWAY, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	const struct plan_detour_request req = {
		.code = fn,
		.addr = (uintptr_t)fn,
		.window = &w,
		.buf = (uintptr_t)near,
		.engine = (uintptr_t)entry_hit,
		.form = { .saves = PLAN_SAVE_ALL, .flow = true, .near = true },
		.probes = 1,
	};
	int32_t rel = (int32_t)(near - (fn + PLAN_JUMP_SIZE));

	if (near == MAP_FAILED || plan_detour(&req, &out) != PLAN_OK)
		die("no detour");
	memcpy(near, out.code, out.d.size);
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("the text can't be written");
	fn[0] = 0xe9;
	memcpy(fn + 1, &rel, sizeof(rel));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		die("the text can't be protected");
}

static void plant(struct kprobe *kp)
{
	char why[256];

	if (register_kprobe(kp))
		die("%s", ukp_kprobe_error());
	wait_for_kprobe_optimizer();
	if (ukp_kprobe_form(kp, why, sizeof(why)) != 1 || !(kp->flags & KPROBE_FLAG_OPTIMIZED))
		die("no jump came: %s", why);
}

static bool skipped(int i)
{
	return !floor_vec_mask && (i == FLOOR_VEC);
}

static void measure(int round)
{
	for (int i = 0; i < NR_ROWS; i++) {
		unsigned long before = floor_hits;

		if (skipped(i))
			continue;
		ns_a_call(rows[i].fn, CALLS / 10);
		rows[i].ns[round] = ns_a_call(rows[i].fn, CALLS);
		rows[i].hits += floor_hits - before;
	}
}

static double over(int i, int round)
{
	return rows[i].ns[round] - rows[PLAIN].ns[round];
}

static void print_row(int i)
{
	double ns[ROUNDS], floor[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		ns[r] = over(i, r);
		floor[r] = over((int)rows[i].floor, r);
	}
	printf("%-42s %8.1f %8.1f", rows[i].what, median(rows[i].ns, ROUNDS), median(ns, ROUNDS));
	if (rows[i].floor && !skipped((int)rows[i].floor))
		printf(" %9.2f", median_ratio(ns, floor, ROUNDS));
	if (rows[i].aim > 0)
		printf("  (aim <= %.1f)", rows[i].aim);
	printf("\n");
}

int main(void)
{
	struct kprobe novec = { .addr = (kprobe_opcode_t *)(uintptr_t)work_novec,
		                .pre_handler = count,
		                .flags = UKP_NOVEC };
	struct kprobe vec = { .addr = (kprobe_opcode_t *)(uintptr_t)work_vec,
		              .pre_handler = count_vec };

	plant_entry();
	plant(&novec);
	plant(&vec);
	if (ukp_vec_kind == VEC_XSAVEC && ukp_vec_size <= FLOOR_VEC_ROOM)
		floor_vec_mask = ukp_vec_mask;
	for (int r = 0; r < ROUNDS; r++)
		measure(r);
	printf("%-42s %8s %8s %9s\n", "the library's jump form, medians", "ns", "over", "/ floor");
	for (int i = 0; i < NR_ROWS; i++) {
		if (skipped(i))
			printf("%-42s skipped: no xsavec here\n", rows[i].what);
		else
			print_row(i);
		if (i != PLAIN && !skipped(i) && rows[i].hits != ROUNDS * (CALLS + CALLS / 10))
			die("%s: %lu hits", rows[i].what, rows[i].hits);
	}
	if (novec.nmissed || vec.nmissed)
		die("hits were missed");
	unregister_kprobe(&novec);
	unregister_kprobe(&vec);
	return 0;
}
