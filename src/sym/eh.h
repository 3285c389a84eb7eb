/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame, and the pointers and numbers that it and the exception tables
 * share.
 *
 * Read straight through, not by .eh_frame_hdr's table (which may be missing or
 * lie).  An entry that doesn't make sense is left out; one whose length doesn't
 * ends the reading.  A cursor that runs out of its bytes is bad and yields 0
 * from then on.
 */
#ifndef UKP_SYM_EH_H
#define UKP_SYM_EH_H

#include "sym/internal.h"

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_FORM = 0x0f,
	PE_BASE = 0xf0,
	PE_OMIT = 0xff,
};

struct eh_cursor {
	const uint8_t *buf;
	uint64_t at, end; /* of the entry */
	uint64_t vaddr;   /* of buf[0] */
	bool bad;
};

uint64_t eh_get(struct eh_cursor *c, unsigned int size);
uint64_t eh_uleb(struct eh_cursor *c);
int64_t eh_sleb(struct eh_cursor *c);
/* By the low half of an encoding. */
uint64_t eh_form(struct eh_cursor *c, uint8_t encoding);
uint64_t eh_pointer(struct eh_cursor *c, uint8_t encoding);
void eh_skip(struct eh_cursor *c, uint64_t n);

struct eh_frames {
	uint8_t *buf; /* NULL: the file has none */
	uint64_t size, vaddr;
};

void eh_load(struct eh_frames *f, const struct image *img);

/* Offsets are of the frames' buffer. */
struct eh_cie {
	uint64_t at; /* UINT64_MAX: none yet */
	uint64_t program, end;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding, lsda;
	bool signal, augmented, ok;
};

struct eh_fde {
	uint64_t at;
	uint64_t start, len;
	uint64_t data, end; /* what follows the bounds: augmentation, program */
	struct eh_cie cie;
};

struct eh_walk {
	const struct eh_frames *frames;
	uint64_t at;
	struct eh_cie cie; /* FDEs of one CIE follow each other */
};

#define EH_WALK_INIT(frames)             \
	{                                \
		(frames), 0,             \
		{                        \
			.at = UINT64_MAX \
		}                        \
	}

/* The first FDE at or behind w->at; false at the end of the table. */
bool eh_next(struct eh_walk *w, struct eh_fde *fde);
/*
 * The FDE's exception table (0: none; link-time) and where its program begins.
 * False where that can't be told.
 */
bool eh_augmentation(const struct eh_frames *f, const struct eh_fde *fde, uint64_t *lsda,
                     uint64_t *program);
/* Is there nothing but the return address on the stack where it begins?  cfa.c; budget: of steps.
 */
bool eh_bare_start(const struct eh_frames *f, const struct eh_fde *fde, uint64_t *budget);
/* Do the bounds lie in executable memory? */
bool eh_in_text(const struct image *img, const struct eh_fde *fde);

#endif
