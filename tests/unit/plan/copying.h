/* SPDX-License-Identifier: MIT */
/* Bytes in, copy out: what the tests of the copier share. */
#ifndef TESTS_PLAN_COPYING_H
#define TESTS_PLAN_COPYING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

#define ADDR 0x1000UL
#define SLOT 0x3000UL
#define HIGH 0x7f0000000000UL

struct copied {
	enum plan_refusal why;
	uint8_t out[UKP_SLOT_SIZE];
	struct ukp_site site;
};

static inline struct copied copy_to(const uint8_t *code, size_t n, uint64_t addr, uint64_t slot,
                                    uint64_t post)
{
	const struct plan_request req = {
		.code = code, .avail = n, .addr = addr, .slot = slot, .post = post
	};
	struct copied c = { 0 };

	c.why = plan_copy(&req, c.out, &c.site);
	return c;
}

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define INTO(...) BYTES(__VA_ARGS__)

/* The copy is exactly these bytes and int3 to the end of the slot. */
static inline void expect_bytes(const struct copied *c, const uint8_t *want, size_t n)
{
	assert_int_equal(c->why, PLAN_OK);
	assert_int_equal(c->site.slot_len, n);
	assert_memory_equal(c->out, want, n);
	for (size_t i = n; i < UKP_SLOT_SIZE; i++)
		assert_int_equal(c->out[i], 0xcc);
}

/* code at ADDR becomes want in SLOT. */
static inline void expect_copy(const uint8_t *code, size_t n, const uint8_t *want, size_t want_n)
{
	struct copied c = copy_to(code, n, ADDR, SLOT, 0);

	expect_bytes(&c, want, want_n);
	assert_int_equal(c.site.addr, ADDR);
	assert_int_equal(c.site.slot, SLOT);
	assert_int_equal(c.site.len, n);
	assert_memory_equal(c.site.orig, code, n);
}

static inline void expect_moved(const uint8_t *code, size_t n, uint64_t addr, uint64_t slot,
                                uint64_t post, const uint8_t *want, size_t want_n)
{
	struct copied c = copy_to(code, n, addr, slot, post);

	expect_bytes(&c, want, want_n);
}

/* At off, a thread with sp stands at pc with sp + adj. */
static inline void expect_pc(const struct copied *c, unsigned int off, uint64_t pc, int adj)
{
	struct ukp_site_frame f = { 0 };

	assert_true(ukp_site_frame(&c->site, c->site.slot + off, 0x8000, &f));
	assert_int_equal(f.pc, pc);
	assert_int_equal(f.sp, 0x8000 + (uint64_t)(int64_t)adj);
}

#endif
