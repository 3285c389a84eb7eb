#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints a library of 100,000 functions of the same bytes, f_000000 to f_099999,
# and one more, plain, for who wants one that no f_* probes.
awk 'function one(name) {
	printf ".balign 32\n.globl %s\n.type %s, @function\n%s: lea (%%rdi,%%rdi,2), %%rax\n", name, name, name
	printf "add %%rsi, %%rax\nmov %%rax, %%rdx\nshr $7, %%rdx\nxor %%rdx, %%rax\nadd %%rdi, %%rax\nret\n"
	printf ".size %s, . - %s\n", name, name
}
BEGIN {
	print ".text"
	one("plain")
	for (i = 0; i < 100000; i++)
		one(sprintf("f_%06d", i))
	print ".section .note.GNU-stack, \"\", @progbits"
}'
