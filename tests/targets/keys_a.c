/* SPDX-License-Identifier: MIT */
/* Where the keys are. */
#include "keys.h"

DEFINE_STATIC_KEY_FALSE(shared_key);
DEFINE_STATIC_KEY_TRUE(shared_on);

int keys_a(void)
{
	int n = 0;

	if (static_branch_unlikely(&shared_key))
		n |= 1;
	if (static_branch_likely(&shared_on))
		n |= 2;
	return n;
}
