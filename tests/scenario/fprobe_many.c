/* SPDX-License-Identifier: MIT */
/* Thousands of functions at once: exact counts by thread and place, while probes come and go. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <ukprobes/fprobe.h>

#include "scenario.h"

enum { MANY = 5000, THREADS = 3, ROUNDS = 2 };

/* many_N(x) = x + N in 8 bytes, and a table of them. */
__asm__(".altmacro\n"
        ".macro ukp_many n\n"
        ".text\n.type many_\\n, @function\n"
        "many_\\n: lea \\n(%rdi), %rax\n.p2align 3,0x90\n ret\n.size many_\\n, . - many_\\n\n"
        ".p2align 4\n"
        ".section .data.rel.ro, \"aw\"\n.quad many_\\n\n"
        ".endm\n"
        ".section .data.rel.ro, \"aw\"\n.p2align 3\n"
        "many_table:\n"
        ".text\n.p2align 4\n"
        ".set i, 0\n"
        ".rept 5000\n"
        "ukp_many %i\n"
        ".set i, i+1\n"
        ".endr\n.noaltmacro\n.text\n");

typedef unsigned long (*fn_t)(unsigned long);
extern const fn_t many_table[MANY] __attribute__((visibility("hidden")));

static unsigned int entries[MANY], exits[MANY], wrong;
static volatile bool stop;

static int index_of(unsigned long ip)
{
	int low = 0, high = MANY - 1;

	while (low < high) {
		int mid = (low + high + 1) / 2;

		if ((unsigned long)many_table[mid] <= ip)
			low = mid;
		else
			high = mid - 1;
	}
	return (unsigned long)many_table[low] == ip ? low : -1;
}

static void count(unsigned int *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static int on_entry(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                    struct pt_regs *regs, void *data)
{
	int i = index_of(entry_ip);

	count(i < 0 ? &wrong : &entries[i]);
	if (data)
		*(unsigned long *)data = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void on_exit_(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                     struct pt_regs *regs, void *data)
{
	int i = index_of(entry_ip);

	if (i < 0 || regs_return_value(regs) != *(unsigned long *)data + (unsigned long)i)
		count(&wrong);
	else
		count(&exits[i]);
}

static struct fprobe fp = { .entry_handler = on_entry,
	                    .exit_handler = on_exit_,
	                    .entry_data_size = sizeof(unsigned long) };

static int reset(void **state)
{
	memset(entries, 0, sizeof(entries));
	memset(exits, 0, sizeof(exits));
	wrong = 0;
	stop = false;
	return 0;
}

static void *call_all(void *arg)
{
	unsigned long i, round;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < MANY; i++)
			if (many_table[i](round) != i + round)
				abort();
	return NULL;
}

static void each_has(const unsigned int *v, unsigned int n)
{
	int i;

	for (i = 0; i < MANY; i++)
		if (v[i] != n)
			fail_msg("function %d: %u, not %u", i, v[i], n);
	assert_int_equal(wrong, 0);
}

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int threads(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");
	int n = 0;

	while (fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %d", &n);
	fclose(f);
	return n;
}

static void a_glob_over_thousands_counts_each_call_once(void **state)
{
	struct fprobe few = { .entry_handler = on_entry };
	int files, tasks;

	/*
	 * What the library opens and starts for any probe, and a few more while
	 * jumps are made; none for a place.
	 */
	register_ok(register_fprobe(&few, "many_1", NULL));
	files = open_files();
	tasks = threads();
	register_ok(register_fprobe(&fp, "many_*", NULL));
	assert_true(open_files() < files + 16);
	assert_true(threads() < tasks + 4);
	assert_int_equal(unregister_fprobe(&few), 0);
	assert_int_equal(ukp_fprobe_functions(&fp), MANY);
	call_all(NULL);
	each_has(entries, ROUNDS);
	each_has(exits, ROUNDS);
	run_threads(THREADS, call_all);
	each_has(entries, ROUNDS * (THREADS + 1));
	each_has(exits, ROUNDS * (THREADS + 1));
	assert_int_equal(unregister_fprobe(&fp), 0);
	call_all(NULL);
	each_has(entries, ROUNDS * (THREADS + 1));
	assert_int_equal(fp.nmissed, 0);
}

static void several_globs_overlap(void **state)
{
	struct fprobe odd = { .entry_handler = on_entry };

	register_ok(register_fprobe(&fp, "many_*", "many_*[02468]"));
	register_ok(register_fprobe(&odd, "many_*[13579]", NULL));
	assert_int_equal(ukp_fprobe_functions(&fp), MANY / 2);
	assert_int_equal(ukp_fprobe_functions(&odd), MANY / 2);
	call_all(NULL);
	assert_int_equal(entries[0], 0);
	assert_int_equal(entries[1], 2 * ROUNDS);
	assert_int_equal(exits[1], ROUNDS);
	assert_int_equal(unregister_fprobe(&fp), 0);
	call_all(NULL);
	assert_int_equal(entries[4999], 3 * ROUNDS);
	assert_int_equal(exits[4999], ROUNDS);
	assert_int_equal(unregister_fprobe(&odd), 0);
	assert_int_equal(wrong, 0);
}

static void *call_until(void *arg)
{
	unsigned long i = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (many_table[i % MANY](7) != i % MANY + 7)
			abort();
		i++;
	}
	return NULL;
}

static void on_signal(int sig)
{
	if (many_table[77](1) != 78)
		abort();
}

/* Results stay right, and nothing is reported for an fprobe that isn't there. */
static void coming_and_going_under_fire_harms_nobody(void **state)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t t[THREADS];
	unsigned int before;
	int i, k;

	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, call_until, NULL), 0);
	for (k = 0; k < 5; k++) {
		register_ok(register_fprobe(&fp, "many_*", NULL));
		assert_int_equal(ukp_fprobe_functions(&fp), MANY);
		assert_int_equal(unregister_fprobe(&fp), 0);
		before = __atomic_load_n(&entries[77], __ATOMIC_RELAXED);
		many_table[77](1);
		assert_int_equal(__atomic_load_n(&entries[77], __ATOMIC_RELAXED), before);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	setitimer(ITIMER_PROF, &none, NULL);
	signal(SIGPROF, SIG_IGN);
	assert_int_equal(wrong, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_glob_over_thousands_counts_each_call_once),
		T(several_globs_overlap),
		T(coming_and_going_under_fire_harms_nobody),
	};

	return run_in_both_forms(tests);
}
