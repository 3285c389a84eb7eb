/* SPDX-License-Identifier: MIT */
/* A live text on the terminal; see display.h. */
#include "front/display.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l" /* alternate screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define REST "\033[K"  /* clear to the end of the line */
#define BELOW "\033[J" /* clear to the end of the screen */

static struct sigaction old_tstp;

/* In handlers too. */
static void send(const char *s, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(STDOUT_FILENO, s, len);
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			s += n;
			len -= (size_t)n;
		}
	}
}

static void on_suspend(int sig)
{
	int saved = errno;

	send(LEAVE, sizeof(LEAVE) - 1);
	kill(getpid(), SIGSTOP);
	send(ENTER, sizeof(ENTER) - 1);
	errno = saved;
}

bool display_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

void display_enter(void)
{
	struct sigaction sa = { .sa_handler = on_suspend, .sa_flags = SA_RESTART };

	fflush(stdout);
	send(ENTER, sizeof(ENTER) - 1);
	sigaction(SIGTSTP, &sa, &old_tstp);
}

void display_leave(void)
{
	sigaction(SIGTSTP, &old_tstp, NULL);
	send(LEAVE, sizeof(LEAVE) - 1);
}

static unsigned int count_lines(const char *s)
{
	unsigned int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

void display_frame(FILE *out, const char *text, const char *foot, unsigned int rows,
                   unsigned int columns)
{
	unsigned int nr = count_lines(text), room = rows > 1 ? rows - 1 : 0;
	unsigned int shown = nr <= room ? nr : room ? room - 1 : 0;
	size_t len;

	fputs(HOME, out);
	for (unsigned int i = 0; i < shown; i++) {
		len = strcspn(text, "\n");
		fprintf(out, "%.*s" REST "\r\n", (int)(len < columns ? len : columns), text);
		text += len + 1;
	}
	if (shown < nr && room)
		fprintf(out, "%.*s" REST "\r\n", (int)columns, "... more in a higher window");
	/* No newline: it would scroll when this is the last row. */
	fprintf(out, "%.*s" REST BELOW, (int)columns, foot);
}

void display_draw(const char *text, const char *foot)
{
	struct winsize w = { .ws_row = 0 };
	char *frame = NULL;
	size_t len = 0;
	FILE *f;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	f = open_memstream(&frame, &len);
	if (!f)
		return;
	display_frame(f, text, foot, w.ws_row ? w.ws_row : 24, w.ws_col ? w.ws_col : 80);
	if (!fclose(f))
		send(frame, len);
	free(frame);
}
