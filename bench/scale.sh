#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes the libraries that bench/scale plants in, and runs it: 10,000 functions
# of 16 bytes that lie dense, as many with a page each, and libLLVM.
set -eu
O=${O:-build}
dir=$O/bench/libs
mkdir -p "$dir"

library() { # NAME ALIGNMENT
	[ -e "$dir/$1.so" ] && return
	{
		echo '.text'
		for i in $(seq -f %05.0f 0 9999); do
			printf '.balign %d\n.globl f_%s\n.type f_%s, @function\nf_%s: lea 1(%%rdi), %%rax\nret\n.size f_%s, . - f_%s\n' \
				"$2" "$i" "$i" "$i" "$i" "$i"
		done
		echo '.section .note.GNU-stack, "", @progbits'
	} >"$dir/$1.s"
	gcc -shared -nostdlib -o "$dir/$1.so" "$dir/$1.s"
}
library dense 16
library sparse 4096

set --
for l in dense:60 sparse:100; do
	so=$dir/${l%:*}.so
	set -- "$@" "$so" 'f_00000' '' "$so" 'f_000??' '' "$so" 'f_00???' '' "$so" '*' "${l#*:}"
done
llvm=$(ldconfig -p | sed -n 's/.*libLLVM-14\.so\.1 .*=> //p' | head -1)
if [ -n "$llvm" ]; then
	llvm=$(readlink -f "$llvm")
	set -- "$@" "$llvm" 'LLVM*' '' "$llvm" '*' ''
else
	echo "skipped libLLVM: it is not installed (package libllvm14)"
fi
"$O/bench/scale" "$O/bench/scale_target" "$@"
