// SPDX-License-Identifier: MIT
// Throws through three frames, catches, rethrows; takes backtraces; says what it
// saw.  Each line that comes in is one round.
#include <cstdio>
#include <cstring>
#include <execinfo.h>
#include <stdexcept>
#include <string>

static long caught, destroyed, frames, normal;

struct guard {
	~guard() { destroyed++; }
};

extern "C" __attribute__((noinline)) int thrower(int n)
{
	guard g;
	if (n % 2)
		throw std::runtime_error("n is " + std::to_string(n));
	return n + 1;
}

extern "C" __attribute__((noinline)) int middle(int n)
{
	guard g;
	return thrower(n) + 1;
}

extern "C" __attribute__((noinline)) int outer(int n)
{
	try {
		return middle(n) + 1;
	} catch (std::exception &e) {
		if (e.what() == "n is " + std::to_string(n))
			caught++;
		if (n % 4 == 3)
			throw;
		return -1;
	}
}

extern "C" __attribute__((noinline)) int tracer(int depth)
{
	void *at[64];

	if (depth)
		return tracer(depth - 1) + 0 * depth;
	return backtrace(at, 64);
}

int main()
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 400; i++) {
			try {
				normal += outer(i) == i + 3;
			} catch (std::exception &e) {
				caught++;
			}
		}
		frames = tracer(10);
		printf("caught %ld\ndestroyed %ld\nnormal %ld\nframes %ld\ndone\n", caught,
		       destroyed, normal, frames);
		fflush(stdout);
		caught = destroyed = normal = 0;
	}
}
