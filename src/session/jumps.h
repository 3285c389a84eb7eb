/* SPDX-License-Identifier: MIT */
/*
 * Jumps into the text and out of it, while all threads stand still.
 *
 * Neighbouring windows are read, changed and written in one piece.  Where that
 * fails (a library has just gone), a piece is halved, down to one window.
 */
#ifndef UKP_SESSION_JUMPS_H
#define UKP_SESSION_JUMPS_H

#include "session/windows.h"

/*
 * For each window that waits: if the text has its breakpoints and nobody is in
 * the way, the jump; threads inside are moved to the detour.  It is in then, or
 * out with a reason where the code is not as it should be, or waits on.
 */
void jumps_write(struct target *t, struct window **v, size_t n);

/*
 * The breakpoints back, where the jump still is ours.  All are out afterwards
 * but those that could not be written: -errno then.
 */
int jumps_take_back(struct target *t, struct window **v, size_t n, struct err *err);

#endif
