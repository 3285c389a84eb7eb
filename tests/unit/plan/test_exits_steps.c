/* SPDX-License-Identifier: MIT */
/*
 * The plan of exits against what the CPU does: libraries at work under
 * single-stepping.  Whenever an activation of a function whose exits are known
 * ends, its last instruction was among them; and nothing enters such a function
 * but at its start.
 *
 * Each library has a process of its own.  UKP_TEST_STEPS: how many instructions
 * of the library.
 */
#include "unit/plan/leaving.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static uint64_t step_limit(void)
{
	const char *steps = getenv("UKP_TEST_STEPS");

	return steps ? strtoul(steps, NULL, 0) : 60000;
}

#define FN(handle, ret, name, ...) ret (*name)(__VA_ARGS__) = dlsym(handle, #name)

static void work_zlib(void *h)
{
	FN(h, int, compress2, uint8_t *, unsigned long *, const uint8_t *, unsigned long, int);
	FN(h, int, uncompress, uint8_t *, unsigned long *, const uint8_t *, unsigned long);
	FN(h, unsigned long, crc32, unsigned long, const uint8_t *, unsigned int);
	static uint8_t in[400], out[900], back[400];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)("etaoin shrdlu\n"[i * i % 14] + (i % 97 ? 0 : i));
	for (int level = 0; level <= 9; level += 3) {
		unsigned long n = sizeof(out), m = sizeof(back);

		if (compress2(out, &n, in, sizeof(in), level) || uncompress(back, &m, out, n) ||
		    memcmp(in, back, m))
			abort();
		crc32(0, out, (unsigned int)n);
	}
}

static int work_row(void *arg, int n, char **values, char **names)
{
	return 0;
}

static void work_sqlite(void *h)
{
	static const char *const script[] = {
		"create table t(a integer primary key, b text, c real)",
		"insert into t values (1, 'x', 2.5), (7, printf('%05d', 33), 1e9), (9, hex('q'), "
		"3)",
		"create index i on t(b, c)",
		"select count(*), sum(c), max(b) from t where a > 1 group by b order by 1 desc",
		"update t set c = c * 1.5, b = upper(b) || 'x' where a % 3 = 0",
		"select date('2020-02-29', '+1 year'), abs(-3), replace('aXbX', 'X', 'yy')",
		"select syntax error from",
		"delete from t; drop table t",
	};
	FN(h, int, sqlite3_open, const char *, void **);
	FN(h, int, sqlite3_exec, void *, const char *, int (*)(void *, int, char **, char **),
	   void *, char **);
	FN(h, int, sqlite3_close, void *);
	void *db;

	if (sqlite3_open(":memory:", &db))
		abort();
	for (size_t i = 0; i < sizeof(script) / sizeof(script[0]); i++)
		sqlite3_exec(db, script[i], work_row, NULL, NULL);
	if (sqlite3_close(db))
		abort();
}

static void work_crypto(void *h)
{
	FN(h, const void *, EVP_get_digestbyname, const char *);
	FN(h, int, EVP_Digest, const void *, size_t, uint8_t *, unsigned int *, const void *,
	   void *);
	FN(h, int, BN_hex2bn, void **, const char *);
	FN(h, char *, BN_bn2dec, const void *);
	static const char *const digests[] = { "md5", "sha256", "sha512", "sha3-256" };
	uint8_t md[64];
	void *n = NULL;

	for (size_t i = 0; i < 4; i++)
		if (EVP_Digest("abc", 3, md, NULL, EVP_get_digestbyname(digests[i]), NULL) != 1)
			abort();
	BN_hex2bn(&n, "f123456789abcdef0fedcba9876543210deadbeef0123456789abcdef");
	if (BN_bn2dec(n)[0] != '6')
		return;
}

static int by_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void work_libc(void *h)
{
	static char text[400];
	int v[50];

	for (int i = 0; i < 50; i++)
		v[i] = i * 7919 % 101;
	qsort(v, 50, sizeof(v[0]), by_int);
	for (int i = 0; i < 20; i++) {
		char *end;
		void *p = malloc((size_t)(i * 1000));

		snprintf(text, sizeof(text), "%d %5.3f %s %lx %-9s|", v[i], i / 7.0, "word",
		         i * 99L, i & 1 ? "odd" : "even");
		strtod(text, &end);
		strtol(text, NULL, 0);
		memset(text + 100, i, (size_t)(i * 11));
		memmove(text + 103, text + 100, (size_t)(i * 9));
		if (strstr(text, "word") && strchr(text, '|') && strlen(text) > 3)
			p = realloc(p, (size_t)(i * 3000 + 1));
		free(p);
		setenv("UKP_STEP", text, 1);
		getenv("UKP_STEP");
	}
}

static void work_run(void *h)
{
	FN(h, long, run, long);

	if (!run(5))
		abort();
}

struct job {
	const char *path;
	void (*work)(void *);
	bool whole;    /* all of it, and it counts what it drops */
	bool sabotage; /* forget one exit that is executed */
};

static const struct plan_way_out *executed_way(void)
{
	size_t n;
	const struct plan_function *fn = plan_exits_all(sg.e.x, &n);

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fn[i].nr_exits; k++)
			if (sg.seen[fn[i].first + k])
				return &plan_exits_ways(sg.e.x, &fn[i])[k];
	return NULL;
}

static void report(const char *path)
{
	size_t n, exits = 0, executed = 0;
	const struct plan_function *fn = plan_exits_all(sg.e.x, &n);

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fn[i].nr_exits; k++, exits++)
			executed += sg.seen[fn[i].first + k];
	printf("%s: %lu steps; %lu entries, %lu known; %lu returns, %lu tail jumps, %lu dropped "
	       "(%lu unknown); %zu of %zu exits executed\n",
	       path, sg.steps, sg.entries, sg.known, sg.rets, sg.tails, sg.dropped,
	       sg.dropped_unknown, executed, exits);
	if (sg.violations)
		printf("  %lu violations, first: %s, at %#lx, of the function at %#lx\n",
		       sg.violations, sg.bad, sg.bad_at, sg.bad_fn);
}

static void start_again(void)
{
	sg.steps = sg.inside = sg.entries = sg.known = sg.rets = sg.tails = 0;
	sg.dropped = sg.dropped_unknown = sg.violations = 0;
	sg.pc = sg.sp = 0;
	sg.depth = 0;
}

/* In a child; 0: all is well. */
static int try_job(const struct job *job)
{
	void *h;
	uint64_t open;

	prctl(PR_SET_DUMPABLE, 0);
	h = dlopen(job->path, RTLD_NOW | RTLD_LOCAL);
	if (!h || !step_load(job->path, h))
		return 2;
	if (job->work != work_libc) /* lazy binding and first-time setup apart */
		job->work(h);
	if (job->whole)
		*(long *)dlsym(h, "dropped") = 0;
	step_run(job->work, h, job->whole ? UINT64_MAX : step_limit());
	if (job->sabotage) {
		sg.forget = executed_way();
		start_again();
		step_run(job->work, h, job->whole ? UINT64_MAX : step_limit());
		report(job->path);
		return !sg.forget || !sg.violations;
	}
	report(job->path);
	if (job->whole && sg.dropped + sg.dropped_unknown != *(uint64_t *)dlsym(h, "dropped"))
		return 3;
	if (!job->whole && sg.dropped)
		return 4;
	/* What was entered has left, or is still at it. */
	open = 0;
	for (size_t i = 0; i < sg.depth; i++)
		open += !sg.act[i].fn->why;
	if (sg.known != sg.rets + sg.tails + sg.dropped + open)
		return 5;
	return sg.violations || sg.rets < 10 || sg.known < sg.entries / 2;
}

static void try(const struct job *job)
{
	int status;
	pid_t pid;

	if (access(job->path, R_OK)) {
		print_message("%s is not installed: left out\n", job->path);
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int r = try_job(job);

		fflush(stdout);
		_exit(r);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("%s: status %#x", job->path, status);
}

static void functions_of_each_shape_leave_where_planned(void **state)
{
	static const char *const how[] = { "gcc -O0",   "gcc -O1",
		                           "gcc -O2",   "gcc -O3 -fstack-protector-all",
		                           "gcc -Os",   "gcc -O2 -fno-asynchronous-unwind-tables",
		                           "clang -O0", "clang -O1",
		                           "clang -O2", "clang -O3 -fno-asynchronous-unwind-tables",
		                           "clang -Os" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct job job = { .path = help_path("leaves.so"),
			           .work = work_run,
			           .whole = true };

		assert_true(help_run("%s -w -fPIC -shared -o %s tests/targets/leaves.c", how[i],
		                     job.path));
		print_message("%s ", how[i]);
		try(&job);
		/* A test that never fails proves nothing. */
		job.sabotage = true;
		if (i % 3 == 0)
			try(&job);
	}
}

static void exceptions_leave_where_planned(void **state)
{
	/* Stripped, cold parts have no names. */
	static const char *const how[] = { "g++ -O0", "g++ -O2 -s", "clang++ -O2 -s" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct job job = { .path = help_path("leaves.so"),
			           .work = work_run,
			           .whole = true };

		assert_true(help_run("%s -w -fPIC -shared -o %s tests/targets/leaves.cc", how[i],
		                     job.path));
		print_message("%s ", how[i]);
		try(&job);
	}
}

static void zlib_leaves_where_planned(void **state)
{
	try(&(struct job){ .path = LIB "libz.so.1", .work = work_zlib });
}

static void sqlite_leaves_where_planned(void **state)
{
	try(&(struct job){ .path = LIB "libsqlite3.so.0", .work = work_sqlite });
}

static void libcrypto_leaves_where_planned(void **state)
{
	try(&(struct job){ .path = LIB "libcrypto.so.3", .work = work_crypto });
}

static void libc_leaves_where_planned(void **state)
{
	try(&(struct job){ .path = LIB "libc.so.6", .work = work_libc });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_each_shape_leave_where_planned),
		cmocka_unit_test(exceptions_leave_where_planned),
		cmocka_unit_test(zlib_leaves_where_planned),
		cmocka_unit_test(sqlite_leaves_where_planned),
		cmocka_unit_test(libcrypto_leaves_where_planned),
		cmocka_unit_test(libc_leaves_where_planned),
	};

	return cmocka_run_group_tests(tests, help_setup, help_teardown);
}
