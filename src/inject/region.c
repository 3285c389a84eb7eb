/* SPDX-License-Identifier: MIT */
/*
 * Where a mapping of a held process ends, for those who look at its stacks.
 * The kernel is asked for the one mapping (Linux 6.11); an older one shows all
 * of them, which takes a millisecond for some thousand, once a hold.
 */
#include "inject/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct query { /* struct procmap_query of Linux 6.11 */
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct query)

static int open_maps(struct inject *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", t->pid, t->threads[0].pub.tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* All of them, as the text has them. */
static int read_regions(struct inject *t, int fd)
{
	FILE *f = fdopen(dup(fd), "r");
	size_t cap = 0;
	char *line = NULL;
	int ret = f ? 0 : -ENOMEM;

	while (!ret && getline(&line, &cap, f) > 0) {
		struct region *more;

		if (!(t->nr_regions & (t->nr_regions - 1))) {
			more = realloc(t->regions,
			               (t->nr_regions ? 2 * t->nr_regions : 1) * sizeof(*more));
			if (!more)
				ret = -ENOMEM;
			else
				t->regions = more;
		}
		if (!ret && sscanf(line, "%" SCNx64 "-%" SCNx64, &t->regions[t->nr_regions].start,
		                   &t->regions[t->nr_regions].end) == 2)
			t->nr_regions++;
	}
	free(line);
	if (f)
		fclose(f);
	return ret;
}

static uint64_t search(const struct inject *t, uint64_t addr)
{
	size_t lo = 0, hi = t->nr_regions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->regions[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->nr_regions && t->regions[lo].start <= addr ? t->regions[lo].end : 0;
}

uint64_t inject_region_end(struct inject *t, uint64_t addr)
{
	struct query q = { .size = sizeof(q), .addr = addr };

	if (!t->held || !t->nr)
		return 0;
	if (t->nr_regions)
		return search(t, addr);
	if (t->maps_fd < 0)
		t->maps_fd = open_maps(t);
	if (t->maps_fd < 0)
		return 0;
	if (!t->no_query && !ioctl(t->maps_fd, QUERY, &q))
		return q.end;
	if (!t->no_query && errno != ENOTTY && errno != EINVAL)
		return 0; /* nothing is mapped there */
	t->no_query = true;
	return read_regions(t, t->maps_fd) ? 0 : search(t, addr);
}

/* What was true while it was held. */
void region_forget(struct inject *t)
{
	free(t->regions);
	t->regions = NULL;
	t->nr_regions = 0;
	if (t->maps_fd >= 0)
		close(t->maps_fd);
	t->maps_fd = -1;
}
