/* SPDX-License-Identifier: MIT */
/*
 * Text of /proc/PID/maps of any content.  Whatever it is, the maps that come
 * out are in order, apart from each other and found by address.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_proc *p = calloc(1, sizeof(*p));

	if (!p)
		return 0;
	if (maps_parse(p, (const char *)data, size))
		abort();
	for (size_t i = 0; i < sym_nr_maps(p); i++) {
		const struct sym_map *m = sym_map_at(p, i);

		if (m->start >= m->end || (i && m[-1].end > m->start) ||
		    sym_map_find(p, m->start) != m || sym_map_find(p, m->end - 1) != m ||
		    strlen(m->path) > size)
			abort();
	}
	sym_close(p);
	return 0;
}
