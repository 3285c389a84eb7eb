// SPDX-License-Identifier: MIT
/*
 * Boost.Context's fibers, that functions named b_* switch between: by turns, from
 * thread to thread, with exceptions inside of one, thrown into one, and out of one to
 * who resumed it, and fibers that are left: ended by their owner, which unwinds their
 * stacks, or never entered again.  Each line that comes in names a case and how
 * often; what came of it is printed, how often b_* were called, and how often a fiber
 * was switched to by jump_fcontext().
 */
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace ctx = boost::context;

#define PROBED extern "C" __attribute__((noinline, noclone, noipa))

static unsigned long calls, switches, destroyed, sum;

struct guard {
	~guard()
	{
		destroyed++;
	}
};

static ctx::fiber other; /* what a fiber goes back to, or who is outside goes on with */
static long passed;

/* Nobody is in two threads at a time: the next begins when the last is joined. */
static void switch_over()
{
	switches++;
	other = std::move(other).resume();
}

PROBED long b_leaf(long n)
{
	calls++;
	return n * 3 + 1;
}

PROBED long b_switches(long n)
{
	guard g;

	calls++;
	passed = n;
	switch_over();
	return n + passed;
}

PROBED long b_deep(long n)
{
	guard g;

	calls++;
	return n ? b_deep(n - 1) + b_switches(n) : b_leaf(n);
}

/* By one's way in: outside, as b_switches() is inside. */
PROBED long b_resumes(long n)
{
	calls++;
	passed += n;
	switch_over();
	return passed;
}

PROBED long b_throws(long n)
{
	guard g;

	calls++;
	if (n % 3)
		b_switches(n);
	if (n % 2)
		throw std::runtime_error(std::to_string(n));
	return b_leaf(n);
}

PROBED long b_catches(long n)
{
	calls++;
	try {
		return b_throws(n);
	} catch (std::exception &e) {
		b_switches(2);
		if (n % 5 == 0)
			throw;
		return std::atol(e.what());
	}
}

static void lap(long)
{
	sum += b_deep(4);
}

static void throwing(long n)
{
	for (long i = n; i < n + 8; i++)
		try {
			sum += b_catches(i);
		} catch (std::exception &e) {
			sum += 11;
		}
}

/* What a fiber does, and then it ends.  To be made it is switched to and back. */
template <typename F> static ctx::fiber make(F what)
{
	switches += 2;
	return ctx::fiber{ std::allocator_arg, ctx::fixedsize_stack(64 << 10),
		           [what](ctx::fiber &&from) {
				   other = std::move(from);
				   what();
				   return std::move(other);
			   } };
}

static void to_the_end()
{
	while (other)
		sum += b_resumes(1);
}

static void turns(long n)
{
	other = make([n] { lap(n); });
	to_the_end();
}

static void moves(long n)
{
	other = make([n] { lap(n); });
	while (other)
		std::thread([] { sum += b_resumes(1); }).join();
}

static void throws(long n)
{
	other = make([n] { throwing(n); });
	to_the_end();
}

/* The one who resumes gets what the fiber has thrown. */
static void passes_on(long n)
{
	std::exception_ptr thrown;

	other = make([&thrown, n] {
		try {
			sum += b_throws(n | 1);
		} catch (ctx::detail::forced_unwind &) {
			throw;
		} catch (...) {
			thrown = std::current_exception();
		}
	});
	to_the_end();
	try {
		std::rethrow_exception(thrown);
	} catch (std::runtime_error &e) {
		sum += std::atol(e.what());
	}
}

/* Thrown on top of a fiber's stack, by who comes from outside. */
static void thrown_into(long n)
{
	other = make([n] {
		try {
			sum += b_deep(3);
		} catch (std::runtime_error &) {
			sum += b_leaf(n);
		}
	});
	sum += b_resumes(1);
	other = std::move(other).resume_with([](ctx::fiber &&from) -> ctx::fiber {
		other = std::move(from);
		throw std::runtime_error("from outside");
	});
	to_the_end();
}

/* Its owner has enough: boost throws something through it. */
static void ended(long n)
{
	ctx::fiber kept;

	other = make([n] { lap(n); });
	for (long i = n % 4; i >= 0; i--)
		sum += b_resumes(1);
	kept = std::move(other);
	kept = ctx::fiber();
}

/* Nobody has: its stack is given back, and used by what comes next. */
static char left_stack[4][32 << 10] __attribute__((aligned(64)));

static void left_entry(ctx::detail::transfer_t t)
{
	static ctx::detail::fcontext_t from;

	from = t.fctx;
	sum += [](long n) -> long {
		switches++;
		ctx::detail::jump_fcontext(from, nullptr);
		return n;
	}(b_leaf(2));
	abort();
}

PROBED void b_entry(ctx::detail::transfer_t t)
{
	calls++;
	left_entry(t);
}

static void left(long n)
{
	char *stack = left_stack[n % 4];

	memset(stack, (int)n, sizeof(left_stack[0]));
	switches++;
	ctx::detail::jump_fcontext(ctx::detail::make_fcontext(stack + sizeof(left_stack[0]),
	                                                      sizeof(left_stack[0]), b_entry),
	                           nullptr);
	sum += b_leaf(n);
}

static const struct {
	const char *name;
	void (*fn)(long);
} cases[] = {
	{ "turns", turns },
	{ "moves", moves },
	{ "throws", throws },
	{ "passes-on", passes_on },
	{ "thrown-into", thrown_into },
	{ "ended", ended },
	{ "left", left },
};

int main()
{
	char line[64], name[32];
	long n, times;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%31s %ld", name, &times) == 2) {
		calls = switches = destroyed = sum = 0;
		passed = 0;
		for (auto &c : cases)
			for (n = 1; n <= times && !strcmp(c.name, name); n++)
				c.fn(n);
		printf("result %s: %lu %lu\ncalls %lu\nswitches %lu\ndone %s\n", name, sum,
		       destroyed, calls, switches, name);
	}
}
