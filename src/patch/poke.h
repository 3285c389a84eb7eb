/* SPDX-License-Identifier: MIT */
/*
 * Changing an instruction, or several, that other cores may be running.
 *
 * A core may have fetched some of the bytes before a change and the rest behind
 * it.  So the first byte, which changes in one piece, is an int3 for as long as
 * the others do, and between the steps all cores are made to forget what they
 * have fetched:
 *
 *	e9 11 22 33 44		what is there
 *	cc 11 22 33 44		head	sync	nobody enters any more
 *	cc aa bb cc dd		tail	sync	nobody looks
 *	0f aa bb cc dd		head	sync	all are on the new way
 *
 * Steps that change nothing are left out, so from an int3 to a jump takes two,
 * and back again two.  Whoever runs into the int3 meanwhile traps, and it is
 * for the caller's trap handler to know where to go on: at a probe it does; for
 * other places there is divert().
 *
 * What this can't do is to get threads out of the middle of what is changed:
 * with more than one instruction in it that is the caller's.
 *
 * Two makers of the operations: one's own process (src/lib/own.c) and another
 * one, if the writer can make that one serialise its cores.
 */
#ifndef UKP_PATCH_POKE_H
#define UKP_PATCH_POKE_H

#include <stddef.h>
#include <stdint.h>

#define POKE_MAX 16
#define POKE_INT3 0xcc

struct poke_ops {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	/* Also where pages are r-x.  One byte is seen whole. */
	int (*write)(void *arg, uint64_t addr, const void *buf, size_t len);
	/* On return no core runs what it fetched before. */
	int (*sync)(void *arg);
	/*
	 * A trap at addr goes on at `to`, from before the first int3 on and for
	 * ever or until the next call for addr: a thread may have trapped and
	 * not looked yet.  NULL: no poke wants it.
	 */
	int (*divert)(void *arg, uint64_t addr, uint64_t to);
};

struct poke {
	uint64_t addr;
	uint8_t len;
	uint8_t from[POKE_MAX]; /* what must be there; else nothing is touched, -EINVAL */
	uint8_t to[POKE_MAX];
	/* Where who traps meanwhile goes on, as after what `to` begins with; 0: he knows. */
	uint64_t trap_to;
	int error; /* out; the place is as it was, unless even that failed */
};

/*
 * All of v, which don't overlap, in one go: three syncs however many they are.
 * Each succeeds or fails alone; returns the first error.  Callers exclude each
 * other.
 */
int poke_text(const struct poke_ops *ops, void *arg, struct poke *v, size_t n);

#endif
