/* SPDX-License-Identifier: MIT */
/*
 * A library of functions that exceptions pass through, end in or begin in.
 * dropped counts activations that an exception ends; run() as in leaves.c.
 */
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define FN __attribute__((noinline, used))

extern "C" {
long dropped;
long run(long seed);
}

static volatile long sink;

struct guard {
	long v;

	explicit guard(long v) : v(v) {}
	~guard() { sink = sink + v; }
};

/* In each function that an exception may leave. */
struct counter {
	int before = std::uncaught_exceptions();

	~counter()
	{
		if (std::uncaught_exceptions() > before)
			dropped++;
	}
};

FN long thrower(long x)
{
	if (x % 5 == 3) {
		dropped++;
		throw std::runtime_error("three");
	}
	if (x % 5 == 4) {
		dropped++;
		throw x;
	}
	return x + sink;
}

FN long passes(long x)
{
	guard g(x);

	if (x % 5 >= 3)
		dropped++;
	return thrower(x) + 1;
}

FN long catches(long x)
{
	counter c;

	try {
		return passes(x);
	} catch (long v) {
		return -v;
	}
}

FN long catches_all(long x)
{
	counter c;
	guard g(2);

	try {
		if (x & 1)
			return catches(x) + catches(x + 5);
		return passes(x);
	} catch (const std::exception &e) {
		sink = sink + e.what()[0];
		if (x > 4)
			return x;
	} catch (...) {
		return 2;
	}
	return thrower(x + 2);
}

FN long again(long x)
{
	counter c;

	try {
		return passes(x);
	} catch (...) {
		sink = sink + 1;
		throw;
	}
}

FN long nested(long x)
{
	counter c;

	try {
		try {
			return again(x);
		} catch (long v) {
			guard g(v);

			return catches_all(v);
		}
	} catch (const std::runtime_error &) {
		return 77;
	}
}

struct shape {
	virtual ~shape() {}
	virtual long area(long x) const = 0;
};

struct square : shape {
	long area(long x) const override { return x * x + sink; }
};

struct other {
	virtual ~other() {}
	virtual long edge(long x) const { return x + sink; }
};

/* The second base's functions are entered through thunks. */
struct both : square, other {
	long edge(long x) const override { return area(x) + 1; }
};

FN long calls(const shape &s, const other &o, long x)
{
	return s.area(x) ^ o.edge(x);
}

FN long tail_virtual(const shape &s, long x)
{
	return s.area(x + 1);
}

FN long containers(long x)
{
	std::map<std::string, std::vector<long>> m;

	for (long i = 0; i < 7; i++)
		m[std::to_string(i % 5 + x)].push_back(i);
	try {
		throw std::out_of_range("none");
	} catch (const std::out_of_range &) {
		return m.begin()->second.back() + (long)m.size();
	}
}

FN long swallow(long x)
{
	try {
		return nested(x);
	} catch (...) {
		return 9;
	}
}

long run(long seed)
{
	std::unique_ptr<shape> s(new square);
	both b;
	long sum = 0;

	sink = seed;
	for (long x = 0; x < 7; x++) {
		std::function<long(long)> f = [&](long y) { return swallow(y) + seed; };

		sum = sum * 31 + f(x);
		try {
			sum = sum * 31 + catches_all(x) + calls(x & 1 ? (const shape &)b : *s, b, x);
		} catch (...) {
			sum++;
		}
		sum = sum * 31 + tail_virtual(*s, x);
	}
	return sum * 31 + containers(seed);
}
