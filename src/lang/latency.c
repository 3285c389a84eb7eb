/* SPDX-License-Identifier: MIT */
/*
 * FUNC[=KIND] of ukprobe latency: a return probe without a letter, and what
 * counts as an error.  Columns count in the text as given.
 */
#include "lang/private.h"

#include "wire/hist.h"

static int parse_kind(uint32_t *kind, struct slice s, int column, struct err *err)
{
	static const char *const names[] = {
		[UKP_ERR_AUTO] = "auto", [UKP_ERR_PTR] = "ptr",   [UKP_ERR_S32] = "s32",
		[UKP_ERR_S64] = "s64",   [UKP_ERR_NONE] = "none",
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(s, names[i])) {
			*kind = i;
			return 0;
		}
	return lang_fail(err, -EINVAL, LANG_BAD_KIND, column,
	                 "it is ptr (NULL or an error pointer), s32 or s64 (negative), or none");
}

static int parse_latency(struct lang_def *def, const struct lang_words *w, void *arg,
                         struct err *err)
{
	uint32_t *kind = arg;
	struct slice s;
	size_t eq;
	int ret;

	if (w->nr != 1)
		return lang_fail(err, -EINVAL, LANG_SYNTAX, w->nr ? w->word[1].column : 0,
		                 "it is FUNC[=KIND]");
	s = w->word[0].s;
	eq = slice_find(s, '=');
	def->ret = true;
	*kind = UKP_ERR_AUTO;
	ret = lang_parse_place(def, slice_head(s, eq), 0, err);
	if (!ret && eq < s.n)
		ret = parse_kind(kind, slice_from(s, eq + 1), (int)eq + 1, err);
	if (!ret)
		lang_auto_event(def);
	return ret;
}

int lang_parse_latency(struct lang_def **ret, uint32_t *kind, const char *text, struct err *err)
{
	return lang_parse_with(ret, text, parse_latency, kind, err);
}
