/* SPDX-License-Identifier: MIT */
/*
 * How much of a program's code can have the jump form, and what it costs to
 * know: for each file, the share of function entries and of instructions whose
 * window is safe, the time to gather the file's facts, to compute its target
 * set and to judge all windows, and memory.  -v: why the others aren't.
 *
 * Each file is mapped, not run, by a child of its own.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patch/target_set.h"
#include "plan/window.h"
#include "sym/facts.h"

struct tally {
	size_t total, good;
	size_t why[PLAN_WINDOW_REASONS];
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One executable page of the file, as a mapping that its module can be told from. */
static uint64_t map_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	void *at = MAP_FAILED;

	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return 0;
	for (unsigned int i = 0; i < eh.e_phnum && at == MAP_FAILED; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			break;
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			          (off_t)(ph.p_offset & ~UINT64_C(4095)));
	}
	close(fd);
	return at == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)at;
}

static struct sym_facts *facts_of(const char *path)
{
	uint64_t at = map_code(path);
	struct err err = ERR_INIT;
	struct sym_module *m = NULL;
	struct sym_facts *f;
	struct sym_proc *p;

	if (!at) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	if (!sym_open(&p, getpid(), &err))
		m = sym_module_of(p, at);
	if (!m || sym_facts(m, &f, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.code ? err.text : "no module");
		exit(1);
	}
	sym_close(p);
	return f;
}

static struct plan_targets *targets_of(struct sym_facts *f)
{
	struct plan_module m;
	struct plan_targets *t;

	if (target_set_module(&m, f) || plan_targets_new(&t, &m)) {
		fputs("the target set can't be made\n", stderr);
		exit(1);
	}
	target_set_module_free(&m);
	return t;
}

static void judge(struct tally *y, const struct plan_targets *t, const struct sym_facts_code *c,
                  uint64_t addr)
{
	const uint64_t avail = c->addr + c->size - addr;
	const struct plan_window_request req = {
		.targets = t,
		.code = c->bytes + (addr - c->addr),
		.avail = avail < PLAN_WINDOW_MAX ? (size_t)avail : PLAN_WINDOW_MAX,
		.addr = addr,
	};
	struct plan_window w;

	y->total++;
	if (plan_window(&req, &w))
		y->good++;
	else
		y->why[w.why]++;
}

static void entries(struct tally *y, const struct plan_targets *t, const struct sym_facts *f)
{
	for (size_t i = 0, c = 0; i < f->nr_funcs; i++) {
		while (f->func[i].start - f->code[c].addr >= f->code[c].size)
			c++;
		if (!f->func[i].part)
			judge(y, t, &f->code[c], f->func[i].start);
	}
}

static void instructions(struct tally *y, const struct plan_targets *t, const struct sym_facts *f)
{
	for (size_t i = 0; i < f->nr_code; i++)
		for (uint64_t at = 0; at < f->code[i].size; at++)
			if (plan_targets_boundary(t, f->code[i].addr + at))
				judge(y, t, &f->code[i], f->code[i].addr + at);
}

static double percent(const struct tally *y)
{
	return y->total ? 100.0 * (double)y->good / (double)y->total : 0;
}

static void reasons(const char *what, const struct tally *y)
{
	for (unsigned int i = 1; i < PLAN_WINDOW_REASONS; i++)
		if (y->why[i])
			printf("    %-12s %9zu %6.2f %%  %s\n", what, y->why[i],
			       100.0 * (double)y->why[i] / (double)y->total, plan_window_reason(i));
}

/* How many of them are no start of an instruction: 0, but for words that only look like addresses.
 */
static void stray(const struct plan_targets *t, const struct sym_facts *f)
{
	size_t relocs = 0, extra = 0;

	for (size_t i = 0; i < f->nr_relocs; i++)
		relocs += plan_targets_region(t, f->reloc[i].target) &&
		          !plan_targets_boundary(t, f->reloc[i].target);
	for (size_t i = 0; i < f->nr_extra; i++)
		extra += plan_targets_region(t, f->extra[i]) &&
		         !plan_targets_boundary(t, f->extra[i]);
	printf("    %zu relocations, %zu landing pads; %zu and %zu inside instructions\n",
	       f->nr_relocs, f->nr_pads, relocs, extra);
}

static void measure(const char *path, bool verbose)
{
	const char *slash = strrchr(path, '/');
	struct tally e = { 0 }, n = { 0 };
	struct plan_targets *t;
	struct sym_facts *f;
	struct rusage ru;
	double at[4];

	at[0] = now();
	f = facts_of(path);
	at[1] = now();
	t = targets_of(f);
	at[2] = now();
	entries(&e, t, f);
	instructions(&n, t, f);
	at[3] = now();
	getrusage(RUSAGE_SELF, &ru);
	printf("%-22.22s %8zu %7.2f %9zu %7.2f %8.3f %8.3f %8.3f %8.1f %8.1f %8.1f\n",
	       slash ? slash + 1 : path, e.total, percent(&e), n.total, percent(&n), at[1] - at[0],
	       at[2] - at[1], at[3] - at[2], (double)f->bytes / 1e6,
	       (double)plan_targets_bytes(t) / 1e6, (double)ru.ru_maxrss / 1e3);
	if (verbose) {
		stray(t, f);
		reasons("entries", &e);
		reasons("instructions", &n);
	}
	plan_targets_free(t);
	sym_facts_free(f);
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	int status, bad = 0;

	if (argc < 2 + verbose) {
		fprintf(stderr, "usage: %s [-v] FILE...\n", argv[0]);
		return 1;
	}
	printf("%-22s %8s %7s %9s %7s %8s %8s %8s %8s %8s %8s\n", "", "entries", "safe %", "insns",
	       "safe %", "facts s", "set s", "judge s", "facts MB", "set MB", "peak MB");
	for (int i = 1 + verbose; i < argc; i++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			measure(argv[i], verbose);
			fflush(stdout);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			bad = 1;
	}
	return bad;
}
