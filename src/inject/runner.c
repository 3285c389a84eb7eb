/* SPDX-License-Identifier: MIT */
/* The code that makes system calls in the target (x86/runner.S), for who brings it there. */
#include "inject/internal.h"
#include "inject/arch.h"

const void *inject_runner(size_t *len)
{
	*len = arch_runner_end - arch_runner;
	return arch_runner;
}

bool inject_has_runner(const struct inject *t)
{
	return t->runner;
}
