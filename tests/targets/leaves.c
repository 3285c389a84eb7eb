/* SPDX-License-Identifier: MIT */
/*
 * A library of functions that leave in all the ways that C has, and some that
 * only assembler has.  run() calls each; what it returns depends on its argument
 * alone.  dropped counts activations that end without an instruction of theirs.
 */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#define FN __attribute__((noinline, noclone, used)) long
#ifdef __clang__
#undef FN
#define FN __attribute__((noinline, used)) long
#endif

volatile long sink;
long dropped;
static jmp_buf back;

FN plain(long x)
{
	return sink + x * 3;
}

FN early(long x, long y)
{
	if (x < 0)
		return plain(y) + 1;
	if (x > 100 && y)
		return 7;
	for (long i = 0; i < x; i++)
		if (plain(i) == y)
			return i;
	return -x;
}

FN by_table(long x)
{
	switch (x) {
	case 0:
		return plain(x) * 2;
	case 1:
		return sink - 4;
	case 2:
		sink += x;
		/* fallthrough */
	case 3:
		return 11;
	case 4:
		return plain(plain(x));
	case 5:
		sink ^= 5;
		return 0;
	case 6:
		return plain(6) ^ x;
	case 7:
		return early(-1, x) + 1;
	case 9:
		return 1000 - sink;
	default:
		return x;
	}
}

FN tail(long x)
{
	return plain(x + 1);
}

FN tail_if(long x)
{
	if (x & 1)
		return by_table(x & 7);
	sink++;
	return x;
}

FN tail_pointer(long (*f)(long), long x)
{
	return f(x + 2);
}

FN tail_member(long (**f)(long), long x)
{
	return f[1](x);
}

FN self_tail(long n, long sum)
{
	if (!n)
		return sum;
	sink += n;
	return self_tail(n - 1, sum + n);
}

FN recurse(long n)
{
	return n < 2 ? 1 : recurse(n - 1) + recurse(n - 2);
}

__attribute__((cold, noinline)) long rare(long x)
{
	sink -= x;
	return x + 5;
}

FN with_cold(long x)
{
	if (__builtin_expect(x > 50, 0)) {
		long r = rare(x);

		for (long i = 0; i < r % 5; i++)
			sink += rare(i);
		return r - 1;
	}
	if (__builtin_expect(x < -50, 0))
		sink = rare(-x);
	return plain(x) & 0xff;
}

__attribute__((noreturn, noinline)) void never(long x)
{
	dropped++;
	longjmp(back, (int)x + 1);
}

FN maybe_never(long x)
{
	if (x != 3)
		return x;
	dropped++;
	never(x);
}

FN jumper(long x)
{
	volatile long r = x;

	if (!setjmp(back))
		r = maybe_never(x);
	else
		r = -r;
	return r;
}

FN dynamic(long n)
{
	char *p = alloca((size_t)(n & 1023) + 16);

	memset(p, (int)n, (size_t)(n & 1023) + 16);
	sink += p[n & 15];
	return n ? p[0] + plain(n) : plain(1);
}

FN realigned(long n)
{
	long __attribute__((aligned(64))) v[16];

	for (int i = 0; i < 16; i++)
		v[i] = plain(n + i);
	return v[n & 15] + (long)((unsigned long)v & 63);
}

struct wide {
	long v[6];
};

__attribute__((noinline)) struct wide wide(long x)
{
	struct wide w = { { x, x + 1, sink, 0, 5, x } };

	if (x & 2)
		w.v[3] = plain(x);
	return w;
}

FN variadic(long n, ...)
{
	long sum = 0;
	va_list ap;

	va_start(ap, n);
	for (long i = 0; i < n; i++)
		sum += va_arg(ap, long);
	va_end(ap);
	return sum;
}

FN own_address(void)
{
	return __builtin_return_address(0) != 0;
}

FN computed(const unsigned char *program)
{
	static const void *const op[] = { &&add, &&twice, &&call, &&end };
	long acc = 1;

	goto *op[*program];
add:
	acc += 3;
	goto *op[*++program];
twice:
	acc *= 2;
	goto *op[*++program];
call:
	acc += plain(acc);
	goto *op[*++program];
end:
	return acc;
}

long shared_a(long x);
long shared_b(long x);
long no_cfi(long x);
long runs_into(long x);
long run_into(long x);
long by_push(long x);
__asm__(".text\n"
        ".globl shared_a, shared_b, no_cfi, runs_into, run_into, by_push\n"
        ".type shared_a,@function\n"
        "shared_a: .cfi_startproc; lea 1(%rdi), %rax; jmp 1f; .cfi_endproc\n"
        ".size shared_a, .-shared_a\n"
        ".type shared_b,@function\n"
        "shared_b: .cfi_startproc; lea 2(%rdi), %rax\n"
        "1: add %rax, %rax; ret; .cfi_endproc\n"
        ".size shared_b, .-shared_b\n"
        ".type no_cfi,@function\n"
        "no_cfi: lea 3(%rdi), %rax; ret\n"
        ".size no_cfi, .-no_cfi\n"
        ".type runs_into,@function\n"
        "runs_into: .cfi_startproc; add $4, %rdi; .cfi_endproc\n"
        ".size runs_into, .-runs_into\n"
        ".type run_into,@function\n"
        "run_into: .cfi_startproc; lea 5(%rdi), %rax; ret; .cfi_endproc\n"
        ".size run_into, .-run_into\n"
        ".type by_push,@function\n"
        "by_push: .cfi_startproc; push (%rsp); .cfi_adjust_cfa_offset 8\n"
        "lea 6(%rdi), %rax; ret $8; .cfi_endproc\n"
        ".size by_push, .-by_push\n");

FN assembler(long x)
{
	return shared_a(x) + shared_b(x) + no_cfi(x) + runs_into(x) + run_into(x) + by_push(x);
}

long run(long seed)
{
	static long (*table[])(long) = { plain, by_table, tail, tail_if };
	static const unsigned char program[] = { 0, 1, 2, 1, 0, 0, 3 };
	long sum = 0;

	sink = seed;
	for (long i = -3; i < 12; i++) {
		sum = sum * 31 + early(i, i + seed % 7) + by_table(i) + tail(i) + tail_if(i);
		sum = sum * 31 + tail_pointer(table[i & 3], i) + tail_member(table + (i & 1), i);
		sum = sum * 31 + with_cold(i * 20) + jumper(i) + dynamic(i + 5) + realigned(i);
		sum = sum * 31 + wide(i).v[3] + variadic(3, i, 2L, seed) + own_address();
	}
	sum = sum * 31 + self_tail(9, 1) + recurse(9) + computed(program);
	return sum * 31 + assembler(seed);
}
