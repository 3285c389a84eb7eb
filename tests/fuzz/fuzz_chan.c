/* SPDX-License-Identifier: MIT */
/*
 * Hostile channel bytes against the reader.  The first byte chooses: the
 * input is the whole channel, or it is laid over a good one (else the fuzzer
 * spends its time on the geometry), and whether the target is dead.  What is
 * left of the input after the layout changes the memory between the calls.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -o fuzz_chan \
 *         tests/fuzz/fuzz_chan.c src/wire/check.c src/wire/check_ring.c src/engine/ring.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ring.h"
#include "wire/check.h"

#define HISTS 8192
#define CALLS 300

static size_t good_channel(unsigned char *mem)
{
	const uint32_t subs = 4, shift = 9;
	struct ukp_chan *c = (void *)mem;

	*c = (struct ukp_chan){
		.magic = UKP_CHAN_MAGIC,
		.version = UKP_CHAN_VERSION,
		.nr_shards = 2,
		.nr_stats = 3,
		.nr_rings = 2,
		.nr_subs = subs,
		.sub_shift = shift,
		.off_stats = 128,
		.off_hists = 1024,
		.off_rings = 4096,
		.ring_stride = ukp_ring_stride(subs, shift),
		.size = 4096 + 2 * ukp_ring_stride(subs, shift),
	};
	for (uint32_t i = 0; i < c->nr_rings; i++)
		ukp_ring_init((void *)(mem + c->off_rings + i * c->ring_stride), subs, shift);
	return c->size;
}

/* Pairs of place (3 bytes) and length (1 byte), then so many bytes. */
static const uint8_t *overlay(unsigned char *mem, size_t size, const uint8_t *p, const uint8_t *end,
                              int times)
{
	while (times-- && end - p > 4) {
		size_t at = (p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16) % size;
		size_t n = p[3] % 64;

		p += 4;
		if (n > (size_t)(end - p))
			n = (size_t)(end - p);
		if (n > size - at)
			n = size - at;
		memcpy(mem + at, p, n);
		p += n;
	}
	return p;
}

static void read_all(struct ukp_reader *rd, unsigned char *mem, size_t size, const uint8_t *p,
                     const uint8_t *end)
{
	static struct ukp_hist hist;
	const struct ukp_rec_view *v;
	volatile unsigned char sink = 0;
	struct ukp_ring_counts c;
	struct ukp_stat st;
	uint64_t pos, sum;

	for (uint32_t i = 0; i < CALLS; i++) {
		enum ukp_read ret = ukp_reader_next(rd, i & 1, &v);

		if (ret == UKP_READ_BLOCKED && rd->dead)
			abort();
		if (ret == UKP_READ_BLOCKED && ukp_reader_blocked(rd, i & 1, &pos) && i & 2)
			ukp_reader_expire(rd, i & 1);
		if (ret == UKP_READ_RECORD) {
			if (v->len > UKP_REC_MAX - sizeof(struct ukp_rec))
				abort();
			for (uint32_t k = 0; k < v->len; k++)
				sink ^= v->payload[k];
		}
		ukp_reader_counts(rd, i & 1, &c);
		p = overlay(mem, size, p, end, 1);
		/* What is taken for counts is possible. */
		if (!ukp_stat_sum(rd, i, &st) &&
		    (st.hits | st.records) / UKP_COUNT_MAX >= rd->geo.nr_shards)
			abort();
		if (!ukp_counter_sum(rd, i, &sum) && sum / UKP_COUNT_MAX >= rd->geo.nr_shards)
			abort();
	}
	ukp_hist_read(rd, HISTS, sizeof(hist), 2, &hist);
	(void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct ukp_reader rd;
	const uint8_t *end = data + len;
	unsigned char *mem;
	size_t size;

	if (len < 1)
		return 0;
	/* Exactly so large that ASan sees one byte too far. */
	if (data[0] & 1) {
		size = len - 1;
		mem = malloc(size ? size : 1);
		memcpy(mem, data + 1, size);
		data = end;
	} else {
		unsigned char *big = calloc(1, 1 << 16);

		size = good_channel(big);
		mem = malloc(size);
		memcpy(mem, big, size);
		free(big);
		data = overlay(mem, size, data + 1, end, 8);
	}
	if (!ukp_reader_init(&rd, mem, size)) {
		if (len & 1)
			ukp_reader_set_dead(&rd);
		read_all(&rd, mem, size, data, end);
	}
	free(mem);
	return 0;
}
