#!/bin/bash
# SPDX-License-Identifier: MIT
# A static key that is defined in one shared object and tested in three, one of
# them C++ and loaded and unloaded while the key changes: as the compilers and
# flags of this day make them.
. tests/e2e/lib.sh

WARN="-Wall -Wextra -Wno-unused-parameter -Werror -O2 -g -Iinclude -Itests/targets"

try()
{
	local cc=$1 cxx=$2 lib=$3 exe=$4 dir=$T/keys

	rm -rf "$dir"
	mkdir "$dir"
	# shellcheck disable=SC2086
	$cc -std=gnu11 $WARN $lib -shared -o "$dir/libkeys_a.so" tests/targets/keys_a.c -L"$O" -lukprobes
	# shellcheck disable=SC2086
	$cxx -std=c++11 $WARN $lib -fvisibility=hidden -shared -o "$dir/keys_b.so" \
		tests/targets/keys_b.cc -L"$dir" -lkeys_a -L"$O" -lukprobes
	# shellcheck disable=SC2086
	$cc -std=gnu11 $WARN $exe -o "$dir/main" tests/targets/keys_main.c -L"$dir" -lkeys_a -L"$O" \
		-lukprobes -ldl -pthread
	LD_LIBRARY_PATH=$dir:$O "$dir/main" "$dir/keys_b.so" >"$dir/out" 2>&1 || {
		cat "$dir/out"
		fail "$* failed"
	}
	eq "$(cat "$dir/out")" "all as expected" "$*"
}

try gcc g++ "-fPIC" ""
try gcc g++ "-fPIC -flto" "-flto"
try gcc g++ "-fPIC -Wl,--gc-sections -ffunction-sections" "-fno-pic -no-pie"
try clang clang++ "-fPIC" "-fPIE -pie"
