/* SPDX-License-Identifier: MIT */
/*
 * Where jumps go: the sites of a target, by address, are covered with windows.
 *
 *	text	55  48 89 e5  41 54  48 83 ec 10  e8 ...
 *		|  jump: e9 rel32 |  |taken along|
 *		each covered instruction that has a probe has an entry in the detour
 *
 * A window begins at a probe's place, or a few instructions before where the
 * probe itself has no room.  It has one form: what its probes need of the
 * registers.  Windows that were made stay known, for the same probes come again
 * whenever something else has changed.  When many have not, those that no thread can
 * come back to are spare: their places are used for others (spare.h).  Nothing of it is
 * in the text yet; optimize.c writes it there.
 */
#ifndef UKP_SESSION_WINDOWS_H
#define UKP_SESSION_WINDOWS_H

#include "plan/window.h"
#include "session/modules.h"
#include "session/target.h"
#include "wire/detour.h"

enum window_state {
	WINDOW_OUT,
	WINDOW_WAITS, /* traps go on in its copies; the jump is to come */
	WINDOW_IN,    /* the jump is in the text */
};

/*
 * Sites of a window: of covered instructions by their number, then those in the
 * padding that the jump takes where a function ends, which nobody comes to.
 */
#define WINDOW_SITES (UKP_WINDOW_INSNS + PLAN_JUMP_SIZE - 1)

#define WINDOW_BYTES (PLAN_WINDOW_LONG + 4) /* with what is before the jump */

struct window {
	struct window *older; /* of those that begin at the same hash */
	uint64_t round;       /* of windows_reset(): the last one that wanted it */
	bool spare;           /* nobody comes there any more: in the list of these */
	bool lost;            /* its jump may be in the text still, or come back: stays for ever */
	struct window *prev_spare, *next_spare;
	uint64_t serves;              /* its place: the mapping that has it in reach */
	uint16_t code_room, map_room; /* and bytes of code and of description */
	uint64_t text;  /* what the jump changes, and what must be as in the file: from here */
	uint8_t len;    /* so many bytes */
	uint8_t jump;   /* where in them the jump is; others are only breakpoints */
	uint8_t probes; /* bit i: covered instruction i has one */
	bool ftrace;    /* nothing but nops that a compiler left for this */
	bool count;     /* entries count by themselves */
	bool call;      /* the first one's function may be called in place */
	bool flow;      /* one of our own may do the function's work, and return from it */
	enum window_state state;
	uint32_t saves;                  /* what other entries save */
	uint32_t off;                    /* of its struct ukp_detour in the control area */
	struct site *site[WINDOW_SITES]; /* or NULL */
	struct ukp_detour d;             /* without its map */
	uint8_t code[];                  /* the file's bytes from text on */
};

/* In one stop: pages that are written, and windows, which stays below a millisecond or so. */
#define WINDOWS_PAGES 128
#define WINDOWS_MAX 4096

struct windows;

int windows_open(struct windows **ret, struct modules *m, bool hooks_only);
void windows_close(struct windows *ws);

/* Nothing is covered any more, and no reason holds: begin anew with what wants jumps then. */
void windows_reset(struct target *t, struct windows *ws);
/* Look again at what had no target set yet. */
void windows_again(struct windows *ws);

/*
 * The next windows by address, as many as one stop allows (room for WINDOWS_MAX
 * in v), with their detours in the target; sites that have none get a reason.
 * Returns how many, 0 at the end.
 */
size_t windows_next(struct target *t, struct windows *ws, struct window **v);

/* So many are not wanted now that it is time to look which are spare? */
bool windows_many_idle(const struct windows *ws);
/*
 * While held, and each thread has been outside the engine since windows_reset(): those
 * that are not wanted, and that nobody is in, are spare.
 */
void windows_look_for_spare(struct target *t, struct windows *ws);
/* A place for a detour of that size: a spare one, which is forgotten then.  See spare_next(). */
struct window *windows_spare(const struct windows *ws, struct window *w, uint32_t code,
                             uint32_t map, uint64_t start);
void windows_forget(struct windows *ws, struct window *w);

/* The bytes from text on with breakpoints, and with the jump. */
void window_breakpoints(const struct window *w, uint8_t *bytes);
void window_jump(const struct window *w, uint8_t *bytes);

/* The window whose detour has pc, or NULL. */
const struct window *windows_find(const struct windows *ws, uint64_t pc);

/* A probe of our own is among the site's own, and keeps its breakpoint. */
bool site_is_ours(const struct site *s);
/* One of our own that only a jump may be. */
bool site_has_hook(const struct site *s);

#endif
