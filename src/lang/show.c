/* SPDX-License-Identifier: MIT */
/* A definition as the kernel's kprobe_events shows it. */
#include "lang/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void show_place(FILE *f, const struct lang_def *def)
{
	const struct lang_place *pl = &def->place;

	switch (pl->kind) {
	case LANG_SYM:
		if (pl->module)
			fprintf(f, "%s:", pl->module);
		fputs(pl->sym, f);
		if (pl->offset)
			fprintf(f, "+%" PRId64, pl->offset);
		if (def->many)
			fputs(def->many == LANG_INSNS ? "+*" : def->ret ? "%return" : "", f);
		break;
	case LANG_ADDR:
		fprintf(f, "0x%" PRIx64, pl->addr);
		break;
	case LANG_FILE:
		fprintf(f, "%s:0x%016" PRIx64, pl->module, (uint64_t)pl->offset);
		break;
	}
}

char *lang_show(const struct lang_def *def)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool bad;

	if (!f)
		return NULL;
	fputc(def->many == LANG_FUNCS ? 'f' : def->ret ? 'r' : 'p', f);
	if (def->maxactive)
		fprintf(f, "%" PRIu32, def->maxactive);
	fprintf(f, ":%s/%s ", def->group, def->event);
	show_place(f, def);
	for (unsigned int i = 0; i < def->nr_args; i++)
		fprintf(f, " %s=%s", def->args[i].name, def->args[i].expr);
	bad = ferror(f);
	if (fclose(f) || bad) {
		free(text);
		return NULL;
	}
	return text;
}
