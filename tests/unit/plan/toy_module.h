/* SPDX-License-Identifier: MIT */
/* A module of a few bytes: code at CODE_AT, read-only data at DATA_AT. */
#ifndef TESTS_PLAN_TOY_MODULE_H
#define TESTS_PLAN_TOY_MODULE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/window.h"

#define CODE_AT 0x1000UL
#define DATA_AT 0x8000UL

struct toy {
	uint8_t code[256], data[256];
	size_t size, data_size;
	struct plan_code text;
	struct plan_bounds func[8];
	struct plan_reloc reloc[8];
	uint64_t extra[8];
	uint64_t bare; /* where the CFI says so */
	struct plan_module m;
	struct plan_targets *t;
};

static inline size_t toy_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct toy *toy = arg;
	uint64_t off = addr - DATA_AT;

	if (off >= toy->data_size)
		return 0;
	if (len > toy->data_size - off)
		len = toy->data_size - off;
	memcpy(buf, toy->data + off, len);
	return len;
}

static inline bool toy_bare(void *arg, uint64_t pc)
{
	return ((struct toy *)arg)->bare == pc;
}

static inline void toy_code(struct toy *toy, const uint8_t *code, size_t n)
{
	memset(toy, 0, sizeof(*toy));
	memcpy(toy->code, code, n);
	toy->size = n;
	toy->text = (struct plan_code){ CODE_AT, toy->code, n };
	toy->m = (struct plan_module){ .code = &toy->text,
		                       .nr_code = 1,
		                       .func = toy->func,
		                       .reloc = toy->reloc,
		                       .extra = toy->extra,
		                       .read = toy_read,
		                       .bare_stack = toy_bare,
		                       .arg = toy };
}

#define TOY(toy, ...) \
	toy_code(toy, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static inline void toy_func(struct toy *toy, size_t start, size_t end, bool part)
{
	toy->func[toy->m.nr_funcs++] =
		(struct plan_bounds){ CODE_AT + start, CODE_AT + end, part, false };
}

/* A 32-bit entry of a table at DATA_AT. */
static inline void toy_entry(struct toy *toy, size_t to)
{
	int32_t v = (int32_t)(CODE_AT + to - DATA_AT);

	memcpy(toy->data + toy->data_size, &v, 4);
	toy->data_size += 4;
}

static inline void toy_entry8(struct toy *toy, size_t to)
{
	uint64_t v = CODE_AT + to;

	memcpy(toy->data + toy->data_size, &v, 8);
	toy->data_size += 8;
}

static inline void toy_make(struct toy *toy)
{
	assert_int_equal(plan_targets_new(&toy->t, &toy->m), 0);
}

static inline bool toy_target(const struct toy *toy, size_t off)
{
	return plan_targets_any(toy->t, CODE_AT + off, CODE_AT + off + 1);
}

static inline uint32_t toy_flags(const struct toy *toy, size_t off)
{
	const struct plan_region *r = plan_targets_region(toy->t, CODE_AT + off);

	assert_non_null(r);
	return r->flags;
}

/* Exactly these, by offset; -1 ends. */
static inline void toy_expect_targets(const struct toy *toy, ...)
{
	va_list ap;
	int want;

	va_start(ap, toy);
	want = va_arg(ap, int);
	for (int off = 0; off < (int)toy->size; off++) {
		if (toy_target(toy, (size_t)off) != (off == want))
			fail_msg("offset %d is %sa target", off, off == want ? "not " : "");
		if (off == want)
			want = va_arg(ap, int);
	}
	assert_int_equal(want, -1);
	va_end(ap);
}

#endif
