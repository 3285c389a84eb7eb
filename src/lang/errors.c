/* SPDX-License-Identifier: MIT */
/* Making an error of a code, a place and what it is about. */
#include "lang/private.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const texts[] = {
#define X(code, text) [LANG_##code] = text,
	LANG_KERNEL_ERRORS(X) LANG_OWN_ERRORS(X)
#undef X
};

/* Names come from users and from symbol tables of foreign files. */
static void clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

int lang_fail(struct err *err, int code, enum lang_error what, int column, const char *detail, ...)
{
	char text[ERR_TEXT];
	va_list ap;

	if (!detail)
		return err_at(err, code, column, "%s", texts[what]);
	va_start(ap, detail);
	vsnprintf(text, sizeof(text), detail, ap);
	va_end(ap);
	clean(text);
	return err_at(err, code, column, "%s: %s", texts[what], text);
}
