/* SPDX-License-Identifier: MIT */
/*
 * Either side is killed at any moment, and what it has left is looked at: the target
 * serves on, is as it was after the cure, and what was counted adds up; of a killed
 * target the records can be read, all but those that were being written.
 *
 *	KILLS=N		of each side
 *	SEED=N
 *	CORES=1		the target may leave a core where it dies
 */
#include "victim.h"

#include "wire/check.h"

#define KILLS 8
#define STAY_MS 15
#define THREADS 2
#define EVENTS 3

static long nr, channels;
static long life_us; /* of a broker, or so: some are killed in their second */
static uint64_t records;

/* Its parent does not wait for it before its broker is gone. */
static bool has_ended(pid_t pid)
{
	char path[64], text[512], *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	p = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	if (f)
		fclose(f);
	return !p || strchr("ZX", p[2]);
}

/* Its end of the pipe closes when it can do nothing more, as the lock of a broker does. */
static int run_broker(void *arg)
{
	struct err err = ERR_INIT;
	int ret;

	do {
		ret = live(*(pid_t *)arg, &err);
	} while (!ret);
	if (ret == -ESRCH || has_ended(*(pid_t *)arg))
		return 0;
	fprintf(stderr, "kill %ld: the broker: %s\n", nr, err.text);
	return 2;
}

static pid_t start_broker(pid_t pid, int *end)
{
	pid_t broker;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	broker = child(run_broker, &pid);
	close(fd[1]);
	*end = fd[0];
	return broker;
}

static void await_end(int end)
{
	char byte;

	assert_int_equal(read(end, &byte, 1), 0);
	close(end);
}

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* How long it takes on this machine as busy as it is. */
static int measure(void **state)
{
	struct err err = ERR_INIT;
	long begun = now_us();
	pid_t pid;
	int ret;

	shared = shared_page();
	pid = start_target(0);
	ret = live(pid, &err);
	life_us = (now_us() - begun) * 11 / 10;
	child_kill(pid);
	return ret;
}

static void nap_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

/* --- a channel, seen from here ---------------------------------------------------------- */

struct view {
	void *mem;
	size_t size;
};

static struct view *map_fd(int fd)
{
	struct view *v = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size) {
		v = calloc(1, sizeof(*v));
		assert_non_null(v);
		v->size = st.st_size;
		v->mem = mmap(NULL, v->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_ptr_not_equal(v->mem, MAP_FAILED);
	}
	if (fd >= 0)
		close(fd);
	return v;
}

static struct view *channel_of(pid_t pid, const char *folder)
{
	char path[400], link[256];
	struct view *v = NULL;
	struct dirent *e;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, folder);
	d = opendir(path);
	while (d && !v && (e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		snprintf(path, sizeof(path), "/proc/%d/%s/%s", pid, folder, e->d_name);
		if (!strncmp(link, "/memfd:ukprobes-chan", 20))
			v = map_fd(open(path, O_RDWR | O_CLOEXEC));
	}
	if (d)
		closedir(d);
	return v;
}

/* Each other time with probes in, or about to be. */
static long random_moment(pid_t broker)
{
	long end = now_us() + 2 * life_us;
	struct view *v = NULL;

	if (random() % 2)
		return random() % life_us;
	while (!v && now_us() < end) {
		nap_us(200);
		v = channel_of(broker, "fd");
	}
	if (v)
		munmap(v->mem, v->size);
	free(v);
	return random() % (2000 * STAY_MS);
}

struct sums {
	uint64_t hits, records, misses, seen, missing, bad;
};

static void read_rings(struct ukp_reader *r, struct sums *s)
{
	const struct ukp_rec_view *rec;
	struct ukp_ring_counts c;
	enum ukp_read got;
	uint32_t i;

	for (i = 0; i < r->geo.nr_rings; i++) {
		while ((got = ukp_reader_next(r, i, &rec)) == UKP_READ_RECORD)
			if (rec->event >= EVENTS)
				wrong("a record of event %u", rec->event);
		if (got == UKP_READ_BLOCKED)
			wrong("ring %u is blocked", i);
		ukp_reader_counts(r, i, &c);
		s->seen += c.seen;
		s->missing += c.missing;
		s->bad += c.bad;
	}
}

/* Nobody writes any more; slack: how many records and counts may be amiss. */
static void check_channel(struct view *v, uint64_t slack)
{
	struct ukp_reader *r = malloc(sizeof(*r));
	struct sums s = { 0 };
	struct ukp_stat st;
	uint32_t i, k;

	assert_non_null(r);
	/* One that has no head yet has nothing. */
	if (!ukp_reader_init(r, v->mem, v->size)) {
		ukp_reader_set_dead(r);
		read_rings(r, &s);
		for (i = 0; i < EVENTS; i++) {
			assert_int_equal(ukp_stat_sum(r, i, &st), 0);
			s.hits += st.hits;
			s.records += st.records;
			for (k = 0; k < UKP_MISS_NR; k++)
				s.misses += st.miss[k];
		}
	}
	channels++;
	records += s.seen;
	/* Calls that were on their way have no record. */
	if (s.bad || s.missing > slack || s.seen + slack < s.records ||
	    s.records + slack < s.seen || s.hits + slack < s.records + s.misses ||
	    s.records + s.misses + THREADS * EVENTS + slack < s.hits)
		wrong("%lu hits, %lu records of which %lu were read, %lu missed; %lu attempts came "
		      "to nothing, %lu places are bad",
		      s.hits, s.records, s.seen, s.misses, s.missing, s.bad);
	free(r);
	munmap(v->mem, v->size);
	free(v);
}

/* --- a killed broker ------------------------------------------------------------------------ */

static void cure_it(pid_t pid, const char *before, bool count)
{
	struct view *v = count ? channel_of(pid, "map_files") : NULL;
	const char *why = "";

	if (ukp_cure(pid, NULL, &why))
		wrong("cure: %s", why);
	shared->between = false;
	if (is_alive(pid, "behind the cure"))
		check_serves(pid, "behind the cure");
	if (!failed)
		check_untouched(pid, before);
	if (v)
		check_channel(v, 0);
}

/* Mostly the next broker comes at once, and is killed as well. */
static bool kill_brokers(unsigned int mode, long kills)
{
	pid_t pid = start_target(mode), broker;
	char *before = snapshot(pid);
	int end, st;

	failed = false;
	for (; nr < kills && !failed; nr++) {
		snprintf(what, sizeof(what), "kill %ld of a broker", nr);
		shared->between = true;
		broker = start_broker(pid, &end);
		nap_us(random_moment(broker));
		kill(broker, SIGKILL);
		await_end(end);
		if (waitpid(broker, &st, 0) != broker || !WIFSIGNALED(st))
			wrong("the broker ended before, with %#x", st);
		is_alive(pid, "behind the kill");
		if (!failed && !(random() % 4))
			cure_it(pid, before, true);
	}
	if (!failed)
		cure_it(pid, before, false);
	free(before);
	shared->stop = 1;
	if (failed)
		child_kill(pid);
	else
		assert_int_equal(child_status(pid), 7 << 8);
	return failed;
}

static void kills_of_brokers(unsigned int mode)
{
	long kills = number("KILLS", KILLS);
	unsigned int bad = 0;

	shared = shared_page();
	for (nr = 0; nr < kills;)
		bad += kill_brokers(mode, kills);
	if (bad)
		fail_msg("seed %ld: %u kills of %ld went wrong", number("SEED", 1), bad, kills);
}

static void brokers_of_a_target_that_runs(void **state)
{
	kills_of_brokers(0);
}

static void brokers_of_a_target_that_sleeps(void **state)
{
	kills_of_brokers(SLEEPS);
}

static void brokers_of_a_target_that_handles_all_signals(void **state)
{
	kills_of_brokers(HANDLES);
}

/* --- a killed target ---------------------------------------------------------------------------
 */

static bool kill_target(long n)
{
	pid_t pid = start_target(n & 1), broker;
	struct view *v;
	int end, st;

	failed = false;
	snprintf(what, sizeof(what), "kill %ld of a target", n);
	shared->between = true;
	broker = start_broker(pid, &end);
	nap_us(random_moment(broker));
	v = channel_of(broker, "fd");
	nap_us(random() % 3000);
	kill(pid, SIGKILL);
	await_end(end);
	assert_int_equal(waitpid(broker, &st, 0), broker);
	if (st)
		wrong("the broker ended with %#x", st);
	child_kill(pid);
	if (v)
		check_channel(v, THREADS);
	return failed;
}

static void targets(void **state)
{
	long kills = number("KILLS", KILLS), bad = 0;

	shared = shared_page();
	for (nr = 0; nr < kills; nr++)
		bad += kill_target(nr);
	if (bad)
		fail_msg("seed %ld: %ld kills of %ld went wrong", number("SEED", 1), bad, kills);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brokers_of_a_target_that_runs),
		cmocka_unit_test(brokers_of_a_target_that_sleeps),
		cmocka_unit_test(brokers_of_a_target_that_handles_all_signals),
		cmocka_unit_test(targets),
	};

	int ret;

	stay_ms = STAY_MS;
	srandom((unsigned int)number("SEED", 1));
	ret = cmocka_run_group_tests(tests, measure, NULL);
	printf("%ld channels with %lu records\n", channels, records);
	return ret;
}
