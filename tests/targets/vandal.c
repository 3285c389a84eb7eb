/* SPDX-License-Identifier: MIT */
/*
 * Writes over the memory that it shares with who traces it.  "go" is ten calls of
 * work(); "counts BYTE" fills the counters, the histograms and the place counts
 * of the first probes with that byte, "records BYTE" the start of each ring's
 * data.  Each is answered by its own word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/chan.h"
#include "wire/hist.h"

static char *channel;

__attribute__((noinline)) int work(int v)
{
	__asm__ volatile("" : "+r"(v));
	return v + 1;
}

static int find_channel(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long at;
	char line[512];

	channel = NULL;
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "/memfd:ukprobes-chan") && sscanf(line, "%lx", &at) == 1)
			channel = (char *)at;
	if (f)
		fclose(f);
	return channel != NULL;
}

static void fill_counts(const struct ukp_chan *c, int byte)
{
	size_t stride = (sizeof(struct ukp_hist) + 4095) & ~4095ul;

	for (unsigned int i = 0; i < c->nr_shards; i++) {
		memset(channel + c->off_stats + (size_t)i * c->nr_stats * sizeof(struct ukp_stat),
		       byte, 4 * sizeof(struct ukp_stat));
		memset(channel + c->off_counters + (size_t)i * c->nr_counters * 8, byte, 4096);
		memset(channel + c->off_hists + i * stride, byte, stride);
	}
}

static void fill_records(const struct ukp_chan *c, int byte)
{
	size_t data = (size_t)c->nr_subs << c->sub_shift;

	for (unsigned int i = 0; i < c->nr_rings; i++)
		memset(channel + c->off_rings + (i + 1) * c->ring_stride - data, byte,
		       1 << c->sub_shift);
}

int main(void)
{
	char word[16], line[64];
	int byte = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %i", word, &byte) >= 1) {
		if (!strcmp(word, "go"))
			for (int i = 0; i < 10; i++)
				work(i);
		else if (!find_channel())
			strcpy(word, "nothing");
		else if (!strcmp(word, "counts"))
			fill_counts((const struct ukp_chan *)channel, byte);
		else if (!strcmp(word, "records"))
			fill_records((const struct ukp_chan *)channel, byte);
		puts(word);
	}
	return 0;
}
