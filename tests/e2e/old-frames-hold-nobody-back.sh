#!/bin/bash
# SPDX-License-Identifier: MIT
# What signals have left on an alternate stack that their thread has left since says
# nothing about where the thread is, nor does a breakpoint's frame that a deeper call
# has covered and half overwritten: jumps come all the same, and so does the detach.
. tests/e2e/lib.sh
build stale plain gcc
start "$BIN"
snapshot "$PID" >"$T/before"
calls()
{
	: >"$T/out"
	say round
	await '^calls'
	value calls
}
jumped()
{
	"$UKP" list -p "$PID" | grep -q OPTIMIZED
}
for form in int3 jump; do
	[ $form = jump ] || export UKPROBES_OPTIMIZATION=0
	stat_start 1 'p probed'
	unset UKPROBES_OPTIMIZATION
	n=$(calls)
	[ $form = int3 ] || within 20 jumped || fail "there is no jump"
	n=$((n + $(calls)))
	stat_end
	eq "$(awk '/probed/ { print $1 }' "$T/table")" "$n" "$form: hits"
	assert_untouched "$PID" "$T/before"
done
say end

build leftover plain gcc
start "$BIN"
snapshot "$PID" >"$T/before"
export UKPROBES_OPTIMIZATION=0
stat_start 1 'p probed'
unset UKPROBES_OPTIMIZATION
: >"$T/out"
say call
await '^left'
stat_end
eq "$(value left)" 1 "frames that the breakpoint left"
eq "$(awk '/probed/ { print $1 }' "$T/table")" 1 "int3: hits"
stat_start 1 'p probed'
shortly 20 jumped || fail "there is no jump: $("$UKP" list -p "$PID")"
say on
: >"$T/out"
say call
await '^left'
stat_end
eq "$(awk '/probed/ { print $1 }' "$T/table")" 1 "jump: hits"
assert_untouched "$PID" "$T/before"
