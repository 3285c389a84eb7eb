/* SPDX-License-Identifier: MIT */
/* Loaded and unloaded; in C++, from plain functions, a method, a template and a constructor. */
#include "keys.h"

namespace
{

bool seen;

struct At_load {
	At_load()
	{
		seen = static_branch_unlikely(&shared_key);
	}
} at_load;

struct Tester {
	int test() const
	{
		if (static_branch_unlikely(&shared_key))
			return 4;
		return 0;
	}
};

template <class T> T choose(T on, T off)
{
	return static_branch_unlikely(&shared_key) ? on : off;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int keys_b(void)
{
	int n = Tester().test() | (seen ? 8 : 0);

	if (static_branch_unlikely(&shared_key))
		n |= 1;
	if (static_branch_likely(&shared_on))
		n |= 2;
	if (choose(1, 0) != (n & 1) || choose(1L, 0L) != (n & 1))
		return -1;
	return n;
}
