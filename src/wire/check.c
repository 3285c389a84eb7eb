/* SPDX-License-Identifier: MIT */
/*
 * Checking a channel: its geometry, its counters, its histograms.  The rings
 * are in check_ring.c.  Every value in shared memory is loaded once, atomically,
 * and judged by that copy.
 */
#include "wire/check.h"

#define EINVAL 22
#define EBADMSG 74

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* len bytes at off, 8-aligned, inside of size. */
static int inside(uint64_t off, uint64_t len, uint64_t size)
{
	return !(off & 7) && off <= size && len <= size - off;
}

static void copy_geometry(struct ukp_chan *geo, const void *mem)
{
	const uint64_t *from = mem;
	uint64_t *to = (void *)geo;

	for (size_t i = 0; i < sizeof(*geo) / 8; i++)
		to[i] = load(from + i);
}

static int geometry_ok(const struct ukp_chan *g, size_t size)
{
	if (g->magic != UKP_CHAN_MAGIC || g->version != UKP_CHAN_VERSION || g->size > size)
		return 0;
	if (!g->nr_shards || g->nr_shards > UKP_READER_RINGS || g->nr_stats > UKP_CHAN_STATS)
		return 0;
	if (g->nr_counters > UKP_CHAN_COUNTERS)
		return 0;
	if (!g->nr_rings || g->nr_rings > UKP_READER_RINGS)
		return 0;
	if (g->nr_subs < 2 || g->nr_subs > UKP_READER_SUBS || g->nr_subs & (g->nr_subs - 1))
		return 0;
	if (g->sub_shift < UKP_READER_SHIFT_MIN || g->sub_shift > UKP_READER_SHIFT_MAX)
		return 0;
	if (g->ring_stride != ukp_ring_stride(g->nr_subs, g->sub_shift))
		return 0;
	/* None of these products can overflow: each factor was bounded above. */
	return inside(g->off_stats, (uint64_t)g->nr_shards * g->nr_stats * sizeof(struct ukp_stat),
	              g->size) &&
	       inside(g->off_counters, (uint64_t)g->nr_shards * g->nr_counters * sizeof(uint64_t),
	              g->size) &&
	       inside(g->off_hists, 0, g->size) &&
	       inside(g->off_rings, g->nr_rings * g->ring_stride, g->size);
}

static void start_ring(struct ukp_ring_reader *rr, unsigned char *at, const struct ukp_chan *g)
{
	rr->ring = (struct ukp_ring *)at;
	rr->data = at + g->ring_stride - ((uint64_t)g->nr_subs << g->sub_shift);
	rr->sub = 0;
	rr->off = 0;
	rr->last_seq = 0;
	rr->head = 0;
	rr->newest = g->nr_subs - 1;
	rr->held = 0;
	rr->quarantined = 0;
	rr->hold = 0;
	rr->have = 0;
	rr->blocked = 0;
	rr->pass = 0;
	rr->attempts = 0;
	rr->seen = 0;
	rr->passed = 0;
	rr->bad = 0;
	for (uint32_t i = 0; i < g->nr_subs; i++)
		rr->avail[i] = i;
}

int ukp_reader_init(struct ukp_reader *rd, void *mem, size_t size)
{
	if ((uintptr_t)mem & 7 || size < sizeof(rd->geo))
		return -EINVAL;
	copy_geometry(&rd->geo, mem);
	if (!geometry_ok(&rd->geo, size))
		return -EINVAL;
	rd->mem = mem;
	rd->dead = 0;
	for (uint32_t i = 0; i < rd->geo.nr_rings; i++)
		start_ring(&rd->rings[i], rd->mem + rd->geo.off_rings + i * rd->geo.ring_stride,
		           &rd->geo);
	return 0;
}

int ukp_stat_sum(const struct ukp_reader *rd, uint32_t row, struct ukp_stat *out)
{
	const struct ukp_stat *stats = (const void *)(rd->mem + rd->geo.off_stats);
	uint64_t *sum = (void *)out, v;
	int ret = 0;

	if (row >= rd->geo.nr_stats)
		return -EINVAL;
	for (size_t w = 0; w < sizeof(*out) / 8; w++)
		sum[w] = 0;
	for (uint32_t i = 0; i < rd->geo.nr_shards; i++) {
		const uint64_t *from = (const void *)&stats[(uint64_t)i * rd->geo.nr_stats + row];

		for (size_t w = 0; w < sizeof(*out) / 8; w++) {
			v = load(from + w);
			sum[w] += v;
			ret |= v >= UKP_COUNT_MAX;
		}
	}
	return ret ? -EBADMSG : 0;
}

int ukp_counter_sum(const struct ukp_reader *rd, uint32_t i, uint64_t *out)
{
	const uint64_t *counters = (const void *)(rd->mem + rd->geo.off_counters);
	int ret = 0;

	if (i >= rd->geo.nr_counters)
		return -EINVAL;
	*out = 0;
	for (uint32_t k = 0; k < rd->geo.nr_shards; k++) {
		uint64_t v = load(counters + (uint64_t)k * rd->geo.nr_counters + i);

		*out += v;
		ret |= v >= UKP_COUNT_MAX;
	}
	return ret ? -EBADMSG : 0;
}

/* A value may stand in several shards, and twice in one (engine/hist.c). */
static void add_error(struct ukp_hist *out, int64_t value, uint64_t count)
{
	for (uint32_t i = 0; i < UKP_HIST_ERRS; i++) {
		struct ukp_hist_err *e = &out->err[i];

		if (!e->claimed) {
			e->claimed = 2;
			e->value = value;
		} else if (e->value != value) {
			continue;
		}
		e->count += count;
		return;
	}
	out->err_other += count;
}

static int add_errors(struct ukp_hist *out, const struct ukp_hist *h)
{
	int bad = 0;

	for (uint32_t i = 0; i < UKP_HIST_ERRS; i++) {
		const struct ukp_hist_err *e = &h->err[i];
		uint64_t count;

		/* Acquire: value was written before claimed became 2. */
		if (__atomic_load_n(&e->claimed, __ATOMIC_ACQUIRE) != 2)
			continue;
		count = load(&e->count);
		bad |= count >= UKP_COUNT_MAX;
		if (count)
			add_error(out, __atomic_load_n(&e->value, __ATOMIC_RELAXED), count);
	}
	return bad;
}

/* Nonzero: that is no histogram of ours. */
static int add_shard(struct ukp_hist *out, const struct ukp_hist *h)
{
	uint64_t min = load(&h->min), max = load(&h->max), v;
	uint64_t count = load(&h->count), errors = load(&h->errors), other = load(&h->err_other);
	int bad = (count | errors | other) >= UKP_COUNT_MAX;

	out->count += count;
	out->errors += errors;
	out->sum += load(&h->sum);
	out->err_other += other;
	/* A shard that nobody prepared has min 0 and no values. */
	if (count && min < out->min)
		out->min = min;
	if (count && max > out->max)
		out->max = max;
	bad |= add_errors(out, h);
	for (uint32_t i = 0; i < UKP_HIST_BUCKETS; i++) {
		v = load(&h->bucket[i]);
		out->bucket[i] += v;
		bad |= v >= UKP_COUNT_MAX;
	}
	return bad;
}

/* Are they in the channel? */
static int has_hist(const struct ukp_reader *rd, uint64_t off, uint64_t stride, uint32_t shards)
{
	const uint64_t size = rd->geo.size, one = sizeof(struct ukp_hist);

	return shards && shards <= UKP_READER_RINGS + 1 && !(stride & 7) && stride <= size &&
	       stride >= one && inside(off, (shards - 1) * stride + one, size);
}

int ukp_hist_count(const struct ukp_reader *rd, uint64_t off, uint64_t stride, uint32_t shards,
                   uint64_t *count)
{
	int bad = 0;

	if (!has_hist(rd, off, stride, shards))
		return -EINVAL;
	*count = 0;
	for (uint32_t i = 0; i < shards; i++) {
		const struct ukp_hist *h = (const void *)(rd->mem + off + i * stride);
		uint64_t v = load(&h->count);

		*count += v;
		bad |= v >= UKP_COUNT_MAX;
	}
	return bad ? -EBADMSG : 0;
}

int ukp_hist_read(const struct ukp_reader *rd, uint64_t off, uint64_t stride, uint32_t shards,
                  struct ukp_hist *out)
{
	uint64_t *words = (void *)out;
	int bad = 0;

	if (!has_hist(rd, off, stride, shards))
		return -EINVAL;
	for (size_t w = 0; w < sizeof(*out) / 8; w++)
		words[w] = 0;
	out->min = UINT64_MAX;
	for (uint32_t i = 0; i < shards; i++)
		bad |= add_shard(out, (const void *)(rd->mem + off + i * stride));
	return bad ? -EBADMSG : 0;
}
