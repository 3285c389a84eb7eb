/* SPDX-License-Identifier: MIT */
/*
 * What a bench target understands on its stdin, one line a command, and the
 * functions that are measured.  Replies are one line on stdout.
 *
 *	mov N | push N | getppid N | floor N	run N calls: ns of thread CPU time a call
 *	int3 FUNC on|off			the hand-written int3 floor at a function
 */
#ifndef UKP_BENCH_TARGET_H
#define UKP_BENCH_TARGET_H

/* First instruction "mov": out of line.  First instruction "push %rbp": may be emulated. */
long work_mov(long x);
long work_push(long x);

/* The floor: see floor_int3.c.  0 or -1. */
int floor_plant(long (*fn)(long));
void floor_unplant(void);
unsigned long floor_hits(void);

#endif
