/* SPDX-License-Identifier: MIT */
/* Numbers as text, without printf: each writes at p and returns the place behind. */
#ifndef UKP_FRONT_DIGITS_H
#define UKP_FRONT_DIGITS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 40 /* of 2^127 with a sign; floating ones have 31 at most */

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

/* --- 128 bits, in halves ----------------------------------------------------- */

static inline char *digits_u128(char *p, uint64_t high, uint64_t low)
{
	const uint64_t part = 10000000000000000000ull; /* 19 digits */
	unsigned __int128 v = (unsigned __int128)high << 64 | low;

	if (!high)
		return digits_u(p, low);
	p = digits_u128(p, (uint64_t)(v / part >> 64), (uint64_t)(v / part));
	return digits_fixed(p, (uint64_t)(v % part), 19);
}

static inline char *digits_s128(char *p, uint64_t high, uint64_t low)
{
	if ((int64_t)high >= 0)
		return digits_u128(p, high, low);
	*p++ = '-';
	return digits_u128(p, ~high + !low, -low);
}

static inline char *digits_x128(char *p, uint64_t high, uint64_t low)
{
	if (!high)
		return digits_x(p, low);
	p = digits_x(p, high);
	for (unsigned int i = 16; i--;)
		*p++ = "0123456789abcdef"[low >> 4 * i & 15];
	return p;
}

/* --- floating: the fewest digits, from 6, 15 or 18 on, that give the value back ---- */

static inline int digits_gives_back(const char *text, long double v, unsigned int size)
{
	return size == 4   ? strtof(text, NULL) == (float)v
	       : size == 8 ? strtod(text, NULL) == (double)v
	                   : strtold(text, NULL) == v;
}

/* Of a float (4), a double (8) or what the x87 has (10).  Needs DIGITS_MAX. */
static inline char *digits_f(char *p, long double v, unsigned int size)
{
	int least = size == 4 ? 6 : size == 8 ? 15 : 18, most = least + 3;

	for (int n = least; n <= most; n++) {
		int len = snprintf(p, DIGITS_MAX, "%.*Lg", n, v);

		if (v != v || digits_gives_back(p, v, size) || n == most)
			return p + len;
	}
	return p;
}

#endif
