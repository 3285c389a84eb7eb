/* SPDX-License-Identifier: MIT */
/*
 * Functions whose results are wider than a register, or in another one, and a
 * caller that says what it got, in the words of the trace.  keeps() returns with
 * the vector and x87 state that it was called with: the caller fills all of that
 * and finds it again.  "go" has all of it once.
 */
#include <complex.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define FN __attribute__((noinline))
#else
#define FN __attribute__((noinline, noclone))
#endif
#define TIMES 8

struct pair {
	double a, b;
};
struct mixed {
	long a;
	double b;
};
struct words {
	long a, b;
};
struct floats {
	float a, b, c;
};
struct big {
	int64_t a;
	double b;
	long double c;
	__int128 d;
	float e;
};

static volatile int sink;

static const double values[TIMES] = { 0.1,   -0.0,     INFINITY, 4.9e-324,
	                              1e308, -1 / 3.0, 2,        123456789.125 };

FN float w_float(int i)
{
	sink += i;
	return i == 4 ? -INFINITY : (float)(values[i] * 3);
}

FN double w_double(int i)
{
	sink += i;
	return i == 6 ? (double)NAN : values[i];
}

FN long double w_long(int i)
{
	sink += i;
	return i == 6 ? 1.0L / 3 : i == 7 ? 1e4932L : (long double)values[i] / 3;
}

FN __int128 w_int128(int i)
{
	sink += i;
	return ((__int128)(0x0123456789abcdefll + i) << 64 | 0xfedcba9876543210ull) *
	       (i % 2 ? -1 : 1);
}

FN unsigned __int128 w_small(int i)
{
	sink += i;
	return i < 4 ? (unsigned __int128)i : ~(unsigned __int128)0 - (unsigned int)i;
}

FN struct words w_words(int i)
{
	sink += i;
	return (struct words){ i - 4, ~0l / (i + 1) };
}

FN struct pair w_pair(int i)
{
	sink += i;
	return (struct pair){ values[i], -values[TIMES - 1 - i] };
}

FN struct mixed w_mixed(int i)
{
	sink += i;
	return (struct mixed){ i * -7l, values[i] + 1 };
}

FN struct floats w_floats(int i)
{
	sink += i;
	return (struct floats){ (float)i / 3, (float)i / 7, (float)-i / 9 };
}

FN double complex w_complex(int i)
{
	sink += i;
	return values[i] + (i - 3.5) * I;
}

FN float complex w_complex_float(int i)
{
	sink += i;
	return (float)i / 3 + (i - 3) * 1.5f * I;
}

FN long double complex w_complex_long(int i)
{
	sink += i;
	return (long double)i / 7 + (i - 3) / 9.0L * I;
}

FN struct big w_big(int i)
{
	sink += i;
	return (struct big){ i - 2, values[i], 1.0L / (i + 3), -(__int128)i << 70, (float)i / 3 };
}

FN double w_args(double a, int n, float b, long double on_stack, double c)
{
	sink += n;
	return a + (double)b + (double)on_stack + c;
}

/* --- in the words of the trace ------------------------------------------------- */

static long double back(const char *text, int size)
{
	return size == 4   ? strtof(text, NULL)
	       : size == 8 ? strtod(text, NULL)
	                   : strtold(text, NULL);
}

static void put_float(const char *name, long double v, int size)
{
	char text[64];

	for (int n = size == 4 ? 6 : size == 8 ? 15 : 18;; n++) {
		snprintf(text, sizeof(text), "%.*Lg", n, v);
		if (v != v || n == 21 || back(text, size) == v)
			break;
	}
	printf(" %s=%s", name, text);
}

static void put_wide(const char *name, unsigned __int128 v, int sign)
{
	char text[48], *p = text + sizeof(text);
	int minus = sign && (__int128)v < 0;

	if (minus)
		v = -v;
	*--p = 0;
	do
		*--p = (char)('0' + (int)(v % 10));
	while (v /= 10);
	printf(" %s=%s%s", name, minus ? "-" : "", p);
}

static void say_all(int i)
{
	union {
		double d;
		uint64_t u;
	} bits;
	struct pair p;
	struct mixed m;
	struct words w;
	struct floats f;
	struct big b;
	union {
		float complex c;
		uint64_t u;
	} z;
	double complex c;
	long double complex l;

	printf("float:"), put_float("v", w_float(i), 4), puts("");
	bits.d = w_double(i);
	printf("double:"), put_float("v", bits.d, 8), printf(" bits=0x%lx st=(fault)\n", bits.u);
	printf("long:"), put_float("v", w_long(i), 10), puts("");
	printf("int128:"), put_wide("v", (unsigned __int128)w_int128(i), 1), puts("");
	printf("small:"), put_wide("v", w_small(i), 0), puts("");
	w = w_words(i);
	if (w.b)
		printf("words: v=0x%lx%016lx low=%ld high=%ld\n", w.b, w.a, w.a, w.b);
	else
		printf("words: v=0x%lx low=%ld high=0\n", w.a, w.a);
	p = w_pair(i);
	printf("pair:"), put_float("a", p.a, 8), put_float("b", p.b, 8), puts("");
	m = w_mixed(i);
	printf("mixed: a=%ld", m.a), put_float("b", m.b, 8), puts("");
	f = w_floats(i);
	printf("floats:"), put_float("a", f.a, 4), put_float("c", f.c, 4), puts("");
	c = w_complex(i);
	printf("complex:"), put_float("re", creal(c), 8), put_float("im", cimag(c), 8), puts("");
	z.c = w_complex_float(i);
	printf("complexf:"), put_float("re", crealf(z.c), 4), printf(" both=0x%lx\n", z.u);
	l = w_complex_long(i);
	printf("complexl:"), put_float("re", creall(l), 10), put_float("im", cimagl(l), 10),
		puts("");
	b = w_big(i);
	printf("big: a=%ld", b.a), put_float("b", b.b, 8), put_float("c", b.c, 10);
	put_wide("d", (unsigned __int128)b.d, 1), put_float("e", b.e, 4), puts("");
	w_args(values[i], i, (float)i / 3, i / 7.0L, i * 1.5);
	printf("args:"), put_float("a", values[i], 8), printf(" n=%d", i),
		put_float("b", (float)i / 3, 4);
	put_float("s", i / 7.0L, 10), put_float("c", i * 1.5, 8), puts("");
}

/* --- all state stays --------------------------------------------------------------- */

/* Changes none but general registers; long enough to be probed anywhere. */
void keeps(void);
__asm__(".text\n.globl keeps\n.type keeps, @function\n"
        "keeps: mov $1, %eax\n add $2, %eax\n mov %eax, %ecx\n add $4, %ecx\n ret\n"
        ".size keeps, . - keeps\n");

struct state {
	unsigned char fx[512];
	unsigned char ymm[16][32];
} __attribute__((aligned(64)));

#define EACH16(op)                                                                              \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) \
		op(14) op(15)
#define FILL(n) "movups " #n "*16(%[from]), %%xmm" #n "\n"
#define FILL_Y(n) "vmovups " #n "*32(%[from]), %%ymm" #n "\n"
#define SAVE_Y(n) "vmovups %%ymm" #n ", 512+" #n "*32(%[to])\n"
#define CLOBBERS                                                                              \
	"rax", "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
		"xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", \
		"st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
/* Three values on the x87's stack, the flags of an invalid and an inexact operation, and odd modes.
 */
#define X87_FILL                                                                              \
	"fninit\n fldz\n fldz\n fdivp\n fldpi\n fld1\n fldl2e\n fcom %%st(1)\n fldcw %[cw]\n" \
	"ldmxcsr %[csr]\n"
#define X87_CLEAR "fninit\n ldmxcsr %[plain]\n"

static int same(const struct state *a, const struct state *b)
{
	/* What the last x87 instruction was need not last (AMD keeps it for exceptions only). */
	return !memcmp(a->fx, b->fx, 6) && !memcmp(a->fx + 24, b->fx + 24, 416 - 24) &&
	       !memcmp(a->ymm, b->ymm, sizeof(a->ymm));
}

static void try_sse(struct state *a, struct state *b, const unsigned char *from)
{
	static const unsigned short cw = 0x0b7f;
	static const unsigned int csr = 0x3fa1, plain = 0x1f80;

	__asm__ volatile("sub $256, %%rsp\n" X87_FILL EACH16(FILL) "fxsave64 (%[a])\n call keeps\n"
	                                                           "fxsave64 (%[to])\n" X87_CLEAR
	                                                           "add $256, %%rsp\n"
	                 :
	                 : [from] "b"(from), [a] "r"(a), [to] "r"(b), [cw] "m"(cw), [csr] "m"(csr),
	                   [plain] "m"(plain)
	                 : CLOBBERS);
}

static void try_avx(struct state *a, struct state *b, const unsigned char *from)
{
	static const unsigned short cw = 0x0b7f;
	static const unsigned int csr = 0x3fa1, plain = 0x1f80;

	memcpy(a->ymm, from, sizeof(a->ymm));
	__asm__ volatile(
		"sub $256, %%rsp\n" X87_FILL EACH16(FILL_Y) "fxsave64 (%[a])\n call keeps\n"
							    "fxsave64 (%[to])\n" EACH16(SAVE_Y)
								    X87_CLEAR "vzeroupper\n"
									      "add $256, %%rsp\n"
		:
		: [from] "b"(from), [a] "r"(a), [to] "r"(b), [cw] "m"(cw), [csr] "m"(csr),
		  [plain] "m"(plain)
		: CLOBBERS);
}

static void put_xmm(const char *name, const unsigned char *from)
{
	uint64_t v[2];

	memcpy(v, from, sizeof(v));
	printf(" %s=0x%lx%016lx", name, v[1], v[0]);
}

static int kept(int i)
{
	size_t stride = __builtin_cpu_supports("avx") ? 32 : 16;
	static struct state a, b;
	unsigned char from[512];

	for (unsigned int k = 0; k < sizeof(from); k++)
		from[k] = (unsigned char)(k * 7 + (unsigned int)i + 1) | 1;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	if (__builtin_cpu_supports("avx"))
		try_avx(&a, &b, from);
	else
		try_sse(&a, &b, from);
	printf("keeps:"), put_xmm("a", from), put_float("st", M_LOG2El, 10);
	put_xmm("b", from + 15 * stride), puts("");
	printf("keptin:"), put_xmm("v", from + 3 * stride), put_float("st", 1, 10), puts("");
	return same(&a, &b);
}

int main(void)
{
	char line[64];
	int n;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < TIMES; i++)
			say_all(i);
		for (int i = n = 0; i < TIMES; i++)
			n += kept(i);
		printf("kept %d\n", n);
		fflush(stdout);
	}
	return 0;
}
