/* SPDX-License-Identifier: MIT */
/*
 * A live text on the terminal, drawn anew again and again, in the alternate
 * screen: what was on the terminal comes back at the end, whatever size the
 * window got meanwhile.  Ctrl-Z gives the screen back too, as long as it lasts.
 */
#ifndef UKP_FRONT_DISPLAY_H
#define UKP_FRONT_DISPLAY_H

#include <stdbool.h>
#include <stdio.h>

/* Is standard output a terminal that can do this? */
bool display_possible(void);
void display_enter(void);
void display_leave(void);
/* text: lines; foot: one line that is always visible. */
void display_draw(const char *text, const char *foot);

/* One frame for a window of this size, as display_draw() writes it. */
void display_frame(FILE *out, const char *text, const char *foot, unsigned int rows,
                   unsigned int columns);

#endif
