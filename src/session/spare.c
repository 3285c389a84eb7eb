/* SPDX-License-Identifier: MIT */
/* See spare.h. */
#include "session/spare.h"

#define LARGER 3 /* classes that are looked at: the rest of a place is lost meanwhile */

static unsigned int class_of(uint32_t code)
{
	return code / SPARE_UNIT < SPARE_CLASSES ? code / SPARE_UNIT : SPARE_CLASSES - 1;
}

void spare_add(struct spare *s, struct window *w)
{
	const unsigned int k = class_of(w->code_room);

	w->spare = true;
	w->next_spare = NULL;
	w->prev_spare = s->of[k].last;
	if (s->of[k].last)
		s->of[k].last->next_spare = w;
	else
		s->of[k].first = w;
	s->of[k].last = w;
	s->nr++;
}

void spare_remove(struct spare *s, struct window *w)
{
	const unsigned int k = class_of(w->code_room);

	if (w->prev_spare)
		w->prev_spare->next_spare = w->next_spare;
	else
		s->of[k].first = w->next_spare;
	if (w->next_spare)
		w->next_spare->prev_spare = w->prev_spare;
	else
		s->of[k].last = w->prev_spare;
	w->spare = false;
	s->nr--;
}

struct window *spare_next(const struct spare *s, struct window *w, uint32_t code, uint32_t map,
                          uint64_t start)
{
	unsigned int k = class_of(w ? w->code_room : spare_round(code));
	const unsigned int end = class_of(spare_round(code)) + LARGER;

	w = w ? w->next_spare : s->of[k].first;
	for (;; w = w->next_spare) {
		while (!w && ++k < end && k < SPARE_CLASSES)
			w = s->of[k].first;
		if (!w || (w->map_room >= map && w->serves == start))
			return w;
	}
}
