/* SPDX-License-Identifier: MIT */
/*
 * Static branches (<ukprobes/jump_label.h>): instructions that their program
 * rewrites.  A section lists them, 16 bytes each, with offsets from the fields
 * themselves:
 *
 *	s32 code	five bytes: a nop, or a jmp to target
 *	s32 target
 *	s32 key, flags
 *
 * Nothing else of a file says that target may be jumped to while the nop is
 * there, and none may copy, or stand on, what will be another instruction.
 */
#include <stdlib.h>
#include <string.h>

#include "sym/facts_in.h"

#define ENTRY 16
#define SIZE 5

/* Calls fn for each; stops on nonzero, and returns that. */
static int each(const struct image *img, int (*fn)(uint64_t code, uint64_t target, void *arg),
                void *arg)
{
	const Elf64_Shdr *sh = image_section(img, "ukp_jump_table");
	uint8_t *bytes = sh ? image_load_section(img, sh) : NULL;
	uint64_t i, nr = bytes ? sh->sh_size / ENTRY : 0, at = sh ? sh->sh_addr : 0;
	int r = 0;

	for (i = 0; i < nr && !r; i++, at += ENTRY) {
		int32_t off[2];

		memcpy(off, bytes + i * ENTRY, sizeof(off));
		r = fn(at + (uint64_t)(int64_t)off[0], at + 4 + (uint64_t)(int64_t)off[1], arg);
	}
	free(bytes);
	return r;
}

static int add_extra(uint64_t code, uint64_t target, void *arg)
{
	struct facts *f = arg;
	int r = facts_add_extra(f, code);

	return r ? r : facts_add_extra(f, target);
}

int facts_labels(struct facts *f)
{
	return each(f->img, add_extra, f);
}

static int add_label(uint64_t code, uint64_t target, void *arg)
{
	struct labels *l = arg;

	if (sym_grow(&l->code, &l->room, l->nr, sizeof(*l->code)))
		return -ENOMEM;
	l->code[l->nr++] = code;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static const struct labels *labels_of(struct sym_module *m)
{
	struct labels *l = &m->labels;

	if (l->loaded || !m->img)
		return l;
	l->loaded = true;
	each(m->img, add_label, l);
	if (l->nr)
		qsort(l->code, l->nr, sizeof(*l->code), by_value);
	return l;
}

bool module_label(struct sym_module *m, uint64_t addr)
{
	const struct labels *l = labels_of(m);
	size_t low = 0, high = l->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->code[mid] + SIZE <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->nr && l->code[low] <= addr;
}

bool sym_label(struct sym_module *m, uint64_t addr)
{
	return module_label(m, addr - m->bias);
}

void labels_free(struct labels *l)
{
	free(l->code);
}
