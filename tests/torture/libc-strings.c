/* SPDX-License-Identifier: MIT */
/*
 * What libc has in a version for each kind of processor: functions on strings and
 * memory, narrow and wide, at many lengths and alignments, before the end of a page
 * and across one.  Run again under other GLIBC_TUNABLES, other versions are used;
 * what comes out is the same.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <wchar.h>

#define ROOM (16u << 10)
#define LARGE (24u << 20) /* beyond what is copied through the caches */

static uint64_t sum = 0xcbf29ce484222325;
static char *one, *two, *out; /* ROOM each, and nothing behind it */

int __memcmpeq(const void *a, const void *b, size_t n);

static void num(long v)
{
	for (size_t i = 0; i < sizeof(v); i++)
		sum = (sum ^ ((v >> (8 * i)) & 255)) * 0x100000001b3;
}

static void bytes(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const unsigned char *)p)[i]) * 0x100000001b3;
}

static void at(const void *found, const void *base)
{
	num(found ? (const char *)found - (const char *)base : -1);
}

static int sign(long v)
{
	return (v > 0) - (v < 0);
}

static char *guarded(void)
{
	char *p =
		mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + ROOM, 4096, PROT_NONE))
		exit(3);
	return p;
}

static void fill(char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s[i] = "abcdefghijklmnopqrstuvw"[i % 23];
	s[n] = 0;
}

static void compare(char *s, char *d, size_t n)
{
	size_t places[] = { 0, n / 3, n / 2, n ? n - 1 : 0 };

	num(strcmp(s, d) + strncmp(s, d, n) + strncmp(s, d, n + 9) + memcmp(s, d, n + 1) +
	    strcasecmp(s, d) + strncasecmp(s, d, n) + bcmp(s, d, n) + __memcmpeq(s, d, n + 1));
	for (size_t k = 0; n && k < 4; k++) {
		char *c = d + places[k];

		*c ^= 0x20; /* the other case */
		num(sign(strcmp(s, d)) + 3 * sign(strncmp(s, d, n)) + 9 * sign(memcmp(s, d, n)) +
		    27 * strcasecmp(s, d) + 81 * strncasecmp(s, d, n + 3));
		num(sign(strncmp(s, d, places[k])) + sign(strncmp(d, s, places[k] + 1)));
		*c ^= 0x21;
		num(sign(strcasecmp(s, d)) + 3 * sign(strncasecmp(d, s, places[k] + 1)) +
		    !!__memcmpeq(s, d, n));
		*c = 0;
		num(sign(strcmp(s, d)) + 3 * sign(strcmp(d, s)) + 9 * sign(strncasecmp(s, d, n)));
		*c = s[places[k]];
	}
}

static void find(char *s, size_t n)
{
	size_t places[] = { 0, n / 4, n / 2, n ? n - 1 : 0 };

	num(strlen(s) + strnlen(s, n / 2) + strnlen(s, n) + strnlen(s, n + 40));
	at(rawmemchr(s, 0), s);
	at(strchr(s, 'Z'), s);
	at(strrchr(s, 'Z'), s);
	at(memchr(s, 'Z', n), s);
	at(memrchr(s, 'Z', n), s);
	at(strchrnul(s, 'Z'), s);
	at(strchr(s, 0), s);
	for (size_t k = 0; n && k < 4; k++) {
		char was = s[places[k]];

		s[places[k]] = 'Z';
		at(strchr(s, 'Z'), s);
		at(strrchr(s, 'Z'), s);
		at(memchr(s, 'Z', n), s);
		at(memchr(s, 'Z', places[k]), s);
		at(memrchr(s, 'Z', n), s);
		at(memrchr(s, 'Z', places[k]), s);
		at(rawmemchr(s, 'Z'), s);
		at(strchrnul(s, 'Z'), s);
		num(strcspn(s, "XYZ") + strcspn(s, "Z") + strspn(s, "abcdefghijklmnopqrstuvw"));
		at(strpbrk(s, "0123456789Z"), s);
		s[places[k]] = was;
	}
}

static void copy(const char *s, char *d, size_t n)
{
	num(stpcpy(d, s) - d);
	strcpy(d, s);
	strncpy(d, s, n / 2);
	bytes(d, n);
	num(stpncpy(d, s, n) - d);
	if (n > 20) {
		strncpy(d, s + 10, n);
		num(stpncpy(d, s + n - 3, n) - d);
		bytes(d, n);
		d[n / 3] = 0;
		strcat(d, s + n / 2);
		d[n / 3] = 0;
		strncat(d, s, n / 2);
		d[n / 4] = 0;
		strncat(d, s + n / 2, n);
	}
	bytes(d, strlen(d));
	memcpy(d, s, n);
	num((char *)mempcpy(d, s, n) - d);
	memmove(d + n / 5, d, n - n / 5);
	memmove(d, d + n / 7, n - n / 7);
	if (n)
		memmove(d + 1, d, n - 1);
	bytes(d, n);
	memset(d, (int)n, n);
	bzero(d + n / 2, n / 3);
	at(memccpy(d, s, 'w', n), d);
	bytes(d, n);
}

static void search(char *s, size_t n)
{
	char needle[300];
	size_t len;

	for (len = 1; len < sizeof(needle) && len <= n; len = 2 * len + 1) {
		memcpy(needle, s + n - len, len);
		needle[len] = 0;
		needle[0] = 'Q';
		at(strstr(s, needle), s);
		at(memmem(s, n, needle, len), s);
		s[n - len] = 'Q';
		at(strstr(s, needle), s);
		at(strcasestr(s, needle), s);
		at(memmem(s, n, needle, len), s);
		fill(s, n);
	}
	/* Nearly the same everywhere. */
	memset(s, 'x', n);
	memset(needle, 'x', 70);
	strcpy(needle + 70, "y");
	at(strstr(s, needle), s);
	at(strstr(s, needle + 60), s);
	fill(s, n);
}

static void wide(wchar_t *s, wchar_t *d, size_t n)
{
	size_t k = n ? n - 1 : 0;

	for (size_t i = 0; i < n; i++)
		s[i] = 0x400 + i % 77;
	s[n] = 0;
	num(wcslen(s) + wcsnlen(s, n / 2) + wcsnlen(s, n + 7));
	wcscpy(d, s);
	num(wcscmp(s, d) + wcsncmp(s, d, n) + wmemcmp(s, d, n) + wcscasecmp(s, d));
	wcsncpy(d, s, n / 2);
	num(wcpcpy(d, s) - d);
	num(wcpncpy(d, s, n) - d);
	at(wcschr(s, 0x123), s);
	at(wcsrchr(s, 0x123), s);
	at(wmemchr(s, 0x123, n), s);
	if (!n)
		return;
	s[k] = 0x123;
	d[n] = 0;
	num(sign(wcscmp(s, d)) + 3 * sign(wcsncmp(d, s, n)) + 9 * sign(wmemcmp(s, d, n)) +
	    sign(wcsncmp(d, s, k)) + 27 * sign(wcsncasecmp(s, d, n)));
	at(wcschr(s, 0x123), s);
	at(wcschrnul(s, 0x123), s);
	at(wcsrchr(s, 0x123), s);
	at(wmemchr(s, 0x123, n), s);
	num(wcsspn(s, L"\u0400\u0401\u0402") + wcscspn(s, L"\u0123"));
	wmemset(d, 0x77, n);
	d[n / 2] = 0;
	wcsncat(d, s, n / 3);
	wcscat(d, L"end");
	bytes(d, wcslen(d) * sizeof(*d));
	wmempcpy(d, s, n);
	wmemmove(d + n / 2, d, n - n / 2);
	bytes(d, n * sizeof(*d));
}

/* The first is behind the offset, or ends where the page does; so does the other. */
static void sweep(size_t n, size_t off)
{
	char *s = off == 64 ? one + ROOM - n - 1 : one + off;
	char *d = off == 32 ? two + ROOM - n - 1 : two + (off * 7) % 64;
	size_t w = (n + 1) * sizeof(wchar_t);

	fill(s, n);
	fill(d, n);
	find(s, n);
	compare(s, d, n);
	copy(s, out + off, n);
	if (off < 2 || off == 64)
		search(s, n);
	if (w < ROOM / 2)
		wide((wchar_t *)(off == 64 ? one + ROOM - w : one + off * 4),
		     (wchar_t *)(two + 8 * off), n);
}

static void large(void)
{
	char *p = malloc(2 * LARGE), *q = p + LARGE;

	memset(p, 5, 2 * LARGE);
	for (size_t i = 0; i < LARGE; i += 4099)
		p[i] = (char)i;
	memcpy(q + 3, p, LARGE - 3);
	memmove(p + 4096 * 3 + 5, p, LARGE / 2);
	memmove(p, p + 4096 + 1, LARGE - 5000);
	num(memcmp(p, q, LARGE));
	for (size_t i = 0; i < 2 * LARGE; i += 64 * 1021)
		num(p[i]);
	free(p);
}

int main(int argc, char **argv)
{
	static const size_t more[] = { 191, 192,  200,  255,  256,  257,  320,  384,  511,  512,
		                       513, 1000, 1025, 2047, 2049, 2500, 3000, 4096, 4500, 6000 };
	static const size_t offs[] = { 0, 1, 17, 32, 48, 63, 64 };
	char line[20];

	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	one = guarded();
	two = guarded();
	out = guarded();
	for (size_t o = 0; o < sizeof(offs) / sizeof(*offs); o++) {
		for (size_t n = 0; n < 140; n += n < 70 ? 1 : 5)
			sweep(n, offs[o]);
		for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
			sweep(more[i], offs[o]);
		printf("offset %zu %016" PRIx64 "\n", offs[o], sum);
	}
	large();
	printf("large %016" PRIx64 "\nEND-OF-RUN\n", sum);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	return 0;
}
