/* SPDX-License-Identifier: MIT */
/*
 * The type behind an argument: NAME, NAME[COUNT] and bW@O/C.  All types of the
 * kernel are known, so that a wrong one gets its error; some are not taken.
 */
#include "lang/private.h"

static const struct type {
	const char *name;
	uint8_t kind, size;
	bool is_string;
	const char *unsupported;
} types[] = {
	{ "x64", LANG_X, 8, false, NULL }, /* the default */
	{ "x32", LANG_X, 4, false, NULL },
	{ "x16", LANG_X, 2, false, NULL },
	{ "x8", LANG_X, 1, false, NULL },
	{ "u64", LANG_U, 8, false, NULL },
	{ "u32", LANG_U, 4, false, NULL },
	{ "u16", LANG_U, 2, false, NULL },
	{ "u8", LANG_U, 1, false, NULL },
	{ "s64", LANG_S, 8, false, NULL },
	{ "s32", LANG_S, 4, false, NULL },
	{ "s16", LANG_S, 2, false, NULL },
	{ "s8", LANG_S, 1, false, NULL },
	{ "x128", LANG_X, 16, false, NULL },
	{ "u128", LANG_U, 16, false, NULL },
	{ "s128", LANG_S, 16, false, NULL },
	{ "f32", LANG_F, 4, false, NULL },
	{ "f64", LANG_F, 8, false, NULL },
	{ "f80", LANG_F, 10, false, NULL },
	{ "string", LANG_STRING, 4, true, NULL },
	{ "ustring", LANG_STRING, 4, true, "ustring; string reads the same memory" },
	{ "symstr", LANG_STRING, 4, true, "symstr; x64 prints the address" },
	{ "symbol", LANG_X, 8, false, "symbol; x64 prints the address" },
	{ "char", LANG_U, 1, false, "char; u8 prints the number" },
	{ "%pd", LANG_STRING, 4, false, "%pd is of the kernel's own structures" },
	{ "%pD", LANG_STRING, 4, false, "%pD is of the kernel's own structures" },
};

static int parse_array(struct slice s, int column, struct lang_spec *spec, struct err *err)
{
	size_t close = slice_find(s, ']');
	uint64_t count;

	if (close == s.n)
		return lang_fail(err, -EINVAL, LANG_ARRAY_NO_CLOSE, column + (int)s.n, NULL);
	if (close + 1 < s.n)
		return lang_fail(err, -EINVAL, LANG_BAD_ARRAY_SUFFIX, column + (int)close + 1,
		                 NULL);
	if (lang_number(slice_head(s, close), 0, &count) || !count || count > UINT32_MAX)
		return lang_fail(err, -EINVAL, LANG_BAD_ARRAY_NUM, column, NULL);
	if (count > LANG_ARRAY_MAX)
		return lang_fail(err, -EINVAL, LANG_ARRAY_TOO_BIG, column, "at most %d",
		                 LANG_ARRAY_MAX);
	spec->count = (uint32_t)count;
	return 0;
}

/* Cuts :TYPE[COUNT] off body, which stands at column. */
int lang_cut_type(struct slice *body, int column, struct lang_spec *spec, struct err *err)
{
	size_t colon = slice_find(*body, ':'), open;

	spec->type = (struct slice){ NULL, 0 };
	spec->column = column;
	spec->count = 0;
	if (colon == body->n)
		return 0;
	spec->type = slice_from(*body, colon + 1);
	spec->column = column + (int)colon + 1;
	body->n = colon;
	open = slice_find(spec->type, '[');
	if (open < spec->type.n) {
		struct slice count = slice_from(spec->type, open + 1);

		spec->type.n = open;
		spec->array_column = spec->column + (int)open;
		return parse_array(count, spec->array_column + 1, spec, err);
	}
	return 0;
}

static const struct type *find_bitfield(struct slice s)
{
	static const struct type sizes[] = {
		{ NULL, LANG_U, 1, false, "bit fields" },
		{ NULL, LANG_U, 2, false, "bit fields" },
		{ NULL, LANG_U, 4, false, "bit fields" },
		{ NULL, LANG_U, 8, false, "bit fields" },
	};
	size_t slash = slice_find(s, '/');
	uint64_t bits;

	if (slash == s.n || lang_number(slice_from(s, slash + 1), 0, &bits))
		return NULL;
	for (size_t i = 0; i < 4; i++)
		if (bits == 8u * sizes[i].size)
			return &sizes[i];
	return NULL;
}

static const struct type *find(struct slice s)
{
	if (s.n && s.p[0] == 'b')
		return find_bitfield(s);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (slice_is(s, types[i].name))
			return &types[i];
	return NULL;
}

/* Where none is given. */
static struct slice type_of(struct slice body)
{
	if (slice_starts(body, "%xmm"))
		return (struct slice){ "x128", 4 };
	if (slice_starts(body, "%st"))
		return (struct slice){ "f80", 3 };
	return (struct slice){ "x64", 3 };
}

int lang_find_type(struct slice body, struct lang_spec *spec, struct err *err)
{
	bool own = slice_is(body, "$comm") || slice_is(body, "$COMM") || slice_starts(body, "\\\"");
	const struct type *type;

	if (own && (spec->count || (spec->type.p && !slice_is(spec->type, "string"))))
		return lang_fail(err, -EINVAL, LANG_NEED_STRING_TYPE, spec->column, NULL);
	type = own ? find((struct slice){ "string", 6 })
	           : find(spec->type.p ? spec->type : type_of(body));
	if (!type)
		return lang_fail(
			err, -EINVAL, LANG_BAD_TYPE, spec->column,
			"it is one of u8-u128, s8-s128, x8-x128, f32, f64, f80 and string");
	spec->kind = type->kind;
	spec->size = type->size;
	spec->is_string = type->is_string;
	spec->is_symstr = slice_is(spec->type, "symstr");
	spec->unsupported = type->unsupported;
	return 0;
}

/* bWIDTH@OFFSET/SIZE: the field lies inside its container. */
bool lang_good_bitfield(const struct lang_spec *spec)
{
	uint64_t width, offset;
	struct slice s = spec->type;
	size_t n;

	if (!s.n || s.p[0] != 'b')
		return true;
	s = slice_from(s, 1);
	n = lang_digits(s, 0, &width);
	if (!width || n == s.n || s.p[n] != '@')
		return false;
	s = slice_from(s, n + 1);
	n = lang_digits(s, 0, &offset);
	if (!n || n == s.n || s.p[n] != '/')
		return false;
	return width <= 64 && offset <= 64 && width + offset <= 8u * spec->size;
}
