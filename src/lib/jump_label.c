/* SPDX-License-Identifier: MIT */
/*
 * <ukprobes/jump_label.h>: the tests of all loaded objects by address, and the
 * change of those of one key.
 *
 * A test is in the form that its key's state asks for, always: an object that
 * is loaded with other states than it was compiled for is put right before any
 * of its code runs.  Changes happen under lib_lock(), as all that writes text
 * does; the list has a lock of its own, taken inside that one.
 */
#include "ukprobes/jump_label.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/labels.h"
#include "lib/lib.h"
#include "patch/poke.h"

#define SIZE JUMP_LABEL_NOP_SIZE

struct label {
	uint64_t code, target;
	struct static_key *key;
	const struct jump_entry *table; /* the object's */
	bool branch;                    /* a jmp while the key is off */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct label *labels; /* by code */
static size_t nr_labels;

/* A child has the lock as its parent had it, but not who held it: it may exit all the same. */
static void child_unlocks(void)
{
	pthread_mutex_init(&list_lock, NULL);
}

static void __attribute__((constructor)) at_fork(void)
{
	pthread_atfork(NULL, NULL, child_unlocks);
}

static bool is_on(struct static_key *key)
{
	return static_key_count(key) > 0;
}

/* Where a test in that form goes on. */
static uint64_t lands(uint64_t addr, const uint8_t code[SIZE])
{
	int32_t rel = 0;

	if (code[0] == 0xe9)
		memcpy(&rel, code + 1, sizeof(rel));
	return addr + SIZE + (uint64_t)(int64_t)rel;
}

/* What stands there while the key is on or off. */
static void form(const struct label *l, bool on, uint8_t code[SIZE])
{
	static const uint8_t nop[SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	int32_t rel = (int32_t)(l->target - (l->code + SIZE));

	if (on == l->branch) {
		memcpy(code, nop, SIZE);
		return;
	}
	code[0] = 0xe9;
	memcpy(code + 1, &rel, sizeof(rel));
}

/* Nobody else runs that code, or nobody else is there. */
static int write_plainly(uint64_t addr, const uint8_t code[SIZE])
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), ret = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pwrite(fd, code, SIZE, (off_t)addr);
	if (n != SIZE)
		ret = n < 0 ? -errno : -EIO;
	close(fd);
	return ret;
}

/* --- the list ------------------------------------------------------------------- */

static int by_code(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static uint64_t at(const int *field)
{
	return (uint64_t)field + (uint64_t)(int64_t)*field;
}

static void read_entry(const struct jump_entry *e, const struct jump_entry *table, struct label *l)
{
	l->code = at(&e->code);
	l->target = at(&e->target);
	l->key = *(struct static_key *const *)at(&e->key);
	l->table = table;
	l->branch = e->flags & 1;
}

static void put_right(const struct label *l)
{
	uint8_t want[SIZE];

	form(l, is_on(l->key), want);
	if (memcmp((void *)l->code, want, SIZE))
		write_plainly(l->code, want);
}

static bool is_known(const struct jump_entry *table)
{
	size_t i;

	for (i = 0; i < nr_labels; i++)
		if (labels[i].table == table)
			return true;
	return false;
}

void ukp_jump_label_add(struct jump_entry *start, struct jump_entry *stop)
{
	size_t n = (size_t)(stop - start), i;
	struct label *more;

	if (!n)
		return;
	pthread_mutex_lock(&list_lock);
	more = is_known(start) ? NULL : realloc(labels, (nr_labels + n) * sizeof(*labels));
	if (more) {
		labels = more;
		for (i = 0; i < n; i++) {
			read_entry(&start[i], start, &labels[nr_labels + i]);
			put_right(&labels[nr_labels + i]);
		}
		nr_labels += n;
		qsort(labels, nr_labels, sizeof(*labels), by_code);
	}
	pthread_mutex_unlock(&list_lock);
}

void ukp_jump_label_remove(struct jump_entry *start)
{
	size_t i, n = 0;

	pthread_mutex_lock(&list_lock);
	for (i = 0; i < nr_labels; i++) {
		if (labels[i].table != start)
			labels[n++] = labels[i];
		else if (ukp_lib_ctl)
			site_undivert(labels[i].code);
	}
	nr_labels = n;
	pthread_mutex_unlock(&list_lock);
}

bool labels_reserved(uint64_t start, uint64_t end)
{
	size_t low = 0, high;
	bool found;

	pthread_mutex_lock(&list_lock);
	high = nr_labels;
	/* The first that ends behind start. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (labels[mid].code + SIZE <= start)
			low = mid + 1;
		else
			high = mid;
	}
	found = low < nr_labels && labels[low].code <= end;
	pthread_mutex_unlock(&list_lock);
	return found;
}

int jump_label_text_reserved(void *start, void *end)
{
	return labels_reserved((uint64_t)start, (uint64_t)end);
}

/* --- changes -------------------------------------------------------------------- */

static size_t pokes_of(struct static_key *key, bool on, struct poke **ret)
{
	size_t i, n = 0;
	struct poke *v;

	pthread_mutex_lock(&list_lock);
	v = calloc(nr_labels + 1, sizeof(*v));
	for (i = 0; v && i < nr_labels; i++) {
		const struct label *l = &labels[i];

		if (l->key != key)
			continue;
		v[n].addr = l->code;
		v[n].len = SIZE;
		form(l, !on, v[n].from);
		form(l, on, v[n].to);
		v[n].trap_to = lands(l->code, v[n].to);
		n++;
	}
	pthread_mutex_unlock(&list_lock);
	*ret = v;
	return n;
}

static bool alone(void)
{
	struct stat st;

	/* Two, and one for each thread. */
	return !stat("/proc/self/task", &st) && st.st_nlink == 3;
}

static int poke_alone(struct poke *v, size_t n)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		v[i].error = memcmp((void *)v[i].addr, v[i].from, SIZE)
		                     ? -EINVAL
		                     : write_plainly(v[i].addr, v[i].to);
		ret = ret ? ret : v[i].error;
	}
	return ret;
}

static int poke(struct poke *v, size_t n, struct err *err)
{
	struct sym_proc *sym;
	int ret;

	if (alone())
		return poke_alone(v, n);
	ret = own_sym(&sym, err);
	if (!ret)
		ret = own_init(err);
	if (!ret)
		ret = own_poke(v, n);
	return ret;
}

/* Those that were changed, back again. */
static void unpoke(struct poke *v, size_t n, struct err *err)
{
	size_t i, back = 0;

	for (i = 0; i < n; i++) {
		uint8_t from[SIZE];

		if (v[i].error)
			continue;
		v[back] = v[i];
		memcpy(from, v[back].from, SIZE);
		memcpy(v[back].from, v[back].to, SIZE);
		memcpy(v[back].to, from, SIZE);
		v[back].trap_to = lands(v[back].addr, from);
		back++;
	}
	poke(v, back, err);
}

static int update(struct static_key *key, bool on, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct poke *v;
	size_t n = pokes_of(key, on, &v);
	int ret;

	if (!v)
		return err_set(err, -ENOMEM, "out of memory");
	err->text[0] = 0;
	ret = n ? poke(v, n, err) : 0;
	if (ret) {
		unpoke(v, n, &ignored);
		if (!err->text[0])
			err_set(err, ret, "cannot change the code that tests the key: %s",
			        strerror(-ret));
	}
	free(v);
	return ret;
}

static int load(struct static_key *key)
{
	/* Acquire: who sees the count sees the code. */
	return __atomic_load_n(&key->enabled, __ATOMIC_ACQUIRE);
}

static void store(struct static_key *key, int n)
{
	__atomic_store_n(&key->enabled, n, __ATOMIC_RELEASE);
}

/* From 0 to 1, under the lock; meanwhile -1, for others to wait. */
static int turn_on(struct static_key *key, struct err *err)
{
	int ret;

	store(key, -1);
	ret = update(key, true, err);
	store(key, ret ? 0 : 1);
	return ret;
}

int static_key_enable(struct static_key *key)
{
	struct err *err = lib_err();
	int ret = 0, n = load(key);

	if (n > 0)
		return n == 1 ? 0 : err_set(err, -EINVAL, "the key is counted: %d", n);
	ret = lib_lock(false, err);
	if (ret)
		return ret;
	if (!load(key))
		ret = turn_on(key, err);
	lib_unlock();
	return ret;
}

int static_key_disable(struct static_key *key)
{
	struct err *err = lib_err();
	int ret = 0, n = load(key), one = 1;

	if (n != 1 && n >= 0)
		return n ? err_set(err, -EINVAL, "the key is counted: %d", n) : 0;
	ret = lib_lock(false, err);
	if (ret)
		return ret;
	if (__atomic_compare_exchange_n(&key->enabled, &one, 0, false, __ATOMIC_ACQ_REL,
	                                __ATOMIC_ACQUIRE)) {
		ret = update(key, false, err);
		if (ret)
			store(key, 1);
	}
	lib_unlock();
	return ret;
}

bool static_key_fast_inc_not_disabled(struct static_key *key)
{
	int n = load(key);

	do {
		if (n <= 0 || n == __INT_MAX__)
			return false;
	} while (!__atomic_compare_exchange_n(&key->enabled, &n, n + 1, false, __ATOMIC_ACQ_REL,
	                                      __ATOMIC_ACQUIRE));
	return true;
}

bool static_key_slow_inc(struct static_key *key)
{
	struct err *err = lib_err();
	bool ret;

	if (static_key_fast_inc_not_disabled(key))
		return true;
	if (lib_lock(false, err))
		return false;
	ret = load(key) ? static_key_fast_inc_not_disabled(key) : !turn_on(key, err);
	lib_unlock();
	return ret;
}

bool label_dec_not_one(struct static_key *key)
{
	int n = load(key);

	do {
		if (n <= 1)
			return false;
	} while (!__atomic_compare_exchange_n(&key->enabled, &n, n - 1, false, __ATOMIC_ACQ_REL,
	                                      __ATOMIC_ACQUIRE));
	return true;
}

/* Under the lock: false: others count as well, one less by now. */
static bool dec_to_zero(struct static_key *key)
{
	int one;

	/* Between the two looks others may count up, who need no lock for that. */
	while (!label_dec_not_one(key)) {
		one = 1;
		if (__atomic_compare_exchange_n(&key->enabled, &one, 0, false, __ATOMIC_ACQ_REL,
		                                __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

int static_key_slow_dec(struct static_key *key)
{
	struct err *err = lib_err();
	int ret;

	if (label_dec_not_one(key))
		return 0;
	ret = lib_lock(false, err);
	if (ret)
		return ret;
	if (load(key) <= 0)
		ret = err_set(err, -EINVAL, "the key is off");
	else if (dec_to_zero(key)) {
		ret = update(key, false, err);
		if (ret)
			store(key, 1);
	}
	lib_unlock();
	return ret;
}
