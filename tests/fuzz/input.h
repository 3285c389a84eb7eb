/* SPDX-License-Identifier: MIT */
/* A fuzzer's input, read from its begin; zeros behind its end. */
#ifndef UKP_TESTS_FUZZ_INPUT_H
#define UKP_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct in {
	const uint8_t *p, *end;
};

static inline unsigned int byte(struct in *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static inline unsigned int word(struct in *in)
{
	unsigned int lo = byte(in);

	return lo | byte(in) << 8;
}

/* As many as there are, up to n: how many these were. */
static inline size_t bytes(struct in *in, void *to, size_t n)
{
	if (n > (size_t)(in->end - in->p))
		n = (size_t)(in->end - in->p);
	memcpy(to, in->p, n);
	in->p += n;
	return n;
}

#endif
