/* SPDX-License-Identifier: MIT */
/* Numbers as text, without printf: each writes at p and returns the place behind. */
#ifndef UKP_FRONT_DIGITS_H
#define UKP_FRONT_DIGITS_H

#include <stdint.h>
#include <string.h>

#define DIGITS_MAX 20 /* of 2^64 - 1, or a sign and 19 */

static inline unsigned int digits_count(uint64_t v)
{
	unsigned int n = 1;

	for (; v >= 10000; v /= 10000)
		n += 4;
	if (v >= 1000)
		return n + 3;
	if (v >= 100)
		return n + 2;
	return v >= 10 ? n + 1 : n;
}

/* Exactly n digits, zeros in front. */
static inline char *digits_fixed(char *p, uint64_t v, unsigned int n)
{
	for (unsigned int i = n; i--; v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + n;
}

static inline char *digits_u(char *p, uint64_t v)
{
	return digits_fixed(p, v, digits_count(v));
}

static inline char *digits_s(char *p, int64_t v)
{
	if (v >= 0)
		return digits_u(p, (uint64_t)v);
	*p++ = '-';
	return digits_u(p, -(uint64_t)v);
}

/* At least width wide, blanks in front. */
static inline char *digits_right(char *p, uint64_t v, unsigned int width)
{
	unsigned int n = digits_count(v);

	for (; width > n; width--)
		*p++ = ' ';
	return digits_fixed(p, v, n);
}

static inline char *digits_x(char *p, uint64_t v)
{
	unsigned int n = v ? (67 - (unsigned int)__builtin_clzll(v)) / 4 : 1;

	*p++ = '0';
	*p++ = 'x';
	for (unsigned int i = n; i--; v >>= 4)
		p[i] = "0123456789abcdef"[v & 15];
	return p + n;
}

#endif
