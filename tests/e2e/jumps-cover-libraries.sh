#!/bin/bash
# SPDX-License-Identifier: MIT
# How much of real libraries gets the jump form, planted by the command: at least
# 97 of 100 function entries and 90 of 100 instructions, each other one with a
# reason; and all of it comes out again.
. tests/e2e/lib.sh
build loads dynamic gcc
LIBS=(libz.so.1 libsqlite3.so.0 libc.so.6)
[ -z "$LONG" ] || LIBS+=(libcrypto.so.3)

# All places are listed, and none waits for its jump.
settled()
{
	"$UKP" list -p "$PID" >"$T/list" 2>&1
	[ -s "$T/list" ] && ! grep -q 'on its way' "$T/list"
}

# covered WHAT DEF PERCENT
covered()
{
	local all jump

	"$UKP" stat -p "$PID" -o "$T/table" "$2" 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 60 planted "$PID" 1 || fail "$1: nothing was planted"
	within 120 settled || fail "$1: jumps are still on their way"
	all=$(wc -l <"$T/list")
	jump=$(grep -c '\[OPTIMIZED\] jump$' "$T/list")
	eq "$(grep -c ' int3: ..*' "$T/list" || true)" $((all - jump)) "$1: places with a reason"
	echo "$1: $jump of $all in the jump form"
	[ $((100 * jump)) -ge $(($3 * all)) ] || fail "$1: too few: $(grep -o 'int3: .*' "$T/list" | sort | uniq -c | sort -rn | head -5)"
	kill -INT "$TRACE"
	within 60 gone "$TRACE" || fail "$1: stat doesn't end"
	wait "$TRACE" || fail "$1: stat failed: $(cat "$T/err")"
	assert_untouched "$PID" "$T/before" loose
}

start "$BIN" "${LIBS[@]}"
snapshot "$PID" loose >"$T/before"
for lib in "${LIBS[@]}"; do
	name=${lib%%.*}
	if [ "$(value "$lib")" != 1 ]; then
		without "$name" "it is not installed"
		continue
	fi
	covered "$name, entries" "f $name:*" 97
	covered "$name, instructions" "p $name:*+*" 90
done
