/* SPDX-License-Identifier: MIT */
/*
 * ukprobe latency --json: one object, documented in ukprobe-latency(1).  Times
 * are whole nanoseconds; what is unknown because nothing was called is null.
 */
#include <errno.h>
#include <json-c/json.h>

#include "front/errno_name.h"
#include "front/latency.h"

/*
 * json-c takes over a value on success only; here it is gone either way.  ok
 * collects failures, so that the callers can go straight on.
 */
static void add(struct json_object *to, const char *key, struct json_object *value, bool *ok)
{
	if (to && !json_object_object_add(to, key, value))
		return;
	json_object_put(value);
	*ok = false;
}

static void add_u64(struct json_object *to, const char *key, uint64_t v, bool *ok)
{
	struct json_object *o = json_object_new_uint64(v);

	if (!o)
		*ok = false;
	add(to, key, o, ok);
}

static void add_string(struct json_object *to, const char *key, const char *s, bool *ok)
{
	struct json_object *o = json_object_new_string(s);

	if (!o)
		*ok = false;
	add(to, key, o, ok);
}

static void append(struct json_object *to, struct json_object *value, bool *ok)
{
	if (to && value && !json_object_array_add(to, value))
		return;
	json_object_put(value);
	*ok = false;
}

static void add_times(struct json_object *o, const struct latency *l, bool *ok)
{
	static const char *const key[NR_QUANTILES] = { "p50", "p90", "p99", "p99.9" };

	if (!l->count) {
		add(o, "min", NULL, ok);
		for (unsigned int i = 0; i < NR_QUANTILES; i++)
			add(o, key[i], NULL, ok);
		add(o, "max", NULL, ok);
		add(o, "mean", NULL, ok);
		return;
	}
	add_u64(o, "min", l->min, ok);
	for (unsigned int i = 0; i < NR_QUANTILES; i++)
		add_u64(o, key[i], l->quantile[i], ok);
	add_u64(o, "max", l->max, ok);
	add_u64(o, "mean", l->mean, ok);
}

static struct json_object *histogram(const struct latency *l, bool *ok)
{
	struct json_object *rows = json_object_new_array(), *row;
	unsigned int first, last;

	if (!latency_rows(l, &first, &last))
		return rows;
	for (unsigned int i = first; i <= last; i++) {
		row = json_object_new_object();
		add_u64(row, "from", latency_row_low(i), ok);
		add_u64(row, "below", latency_row_high(i), ok);
		add_u64(row, "count", l->row[i], ok);
		append(rows, row, ok);
	}
	return rows;
}

static struct json_object *errors(const struct latency *l, bool *ok)
{
	struct json_object *list = json_object_new_array(), *e, *value;

	for (unsigned int i = 0; i < l->nr_errors; i++) {
		const char *name = errno_name(l->error[i].value);

		e = json_object_new_object();
		value = json_object_new_int64(l->error[i].value);
		*ok = *ok && value;
		add(e, "value", value, ok);
		if (name)
			add_string(e, "name", name, ok);
		else if (latency_is_pointer(l) && !l->error[i].value)
			add_string(e, "name", "NULL", ok);
		else
			add(e, "name", NULL, ok);
		add_u64(e, "count", l->error[i].count, ok);
		append(list, e, ok);
	}
	return list;
}

static struct json_object *misses(const struct latency *l, bool *ok)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; i < UKP_NR_MISSES; i++)
		if (l->counts.miss[i])
			add_u64(o, ukp_miss_name(i), l->counts.miss[i], ok);
	return o;
}

static struct json_object *function(const struct latency *l, bool *ok)
{
	struct json_object *o = json_object_new_object();

	add_string(o, "name", l->name, ok);
	add_string(o, "kind", l->kind, ok);
	add_u64(o, "count", l->count, ok);
	add_u64(o, "errors", l->errors, ok);
	add_times(o, l, ok);
	add(o, "histogram", histogram(l, ok), ok);
	add(o, "errors_by_value", errors(l, ok), ok);
	add_u64(o, "errors_other", l->other, ok);
	add_u64(o, "hits", l->counts.hits, ok);
	add(o, "misses", misses(l, ok), ok);
	return o;
}

int latency_json(FILE *out, const struct latency *l, unsigned int nr, pid_t pid, double seconds)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	const char *text = NULL;
	bool ok = root && list;
	char length[32];

	/* Without the text, json-c prints all 17 digits of a double. */
	snprintf(length, sizeof(length), "%.3f", seconds);
	add_u64(root, "pid", (uint64_t)pid, &ok);
	add(root, "seconds", json_object_new_double_s(seconds, length), &ok);
	for (unsigned int i = 0; i < nr; i++)
		append(list, function(&l[i], &ok), &ok);
	add(root, "functions", list, &ok);
	if (ok)
		text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
		                                                    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(out, "%s\n", text);
	json_object_put(root);
	return text ? 0 : -ENOMEM;
}
