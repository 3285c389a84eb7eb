#!/bin/bash
# SPDX-License-Identifier: MIT
# A handler that was interrupted by another, on an alternate stack or far above it, goes
# back into a window where a jump is to come, or into a copy that is to go: both wait.
. tests/e2e/lib.sh
build nested dynamic gcc

jumped()
{
	[ "$("$UKP" list -p "$PID" | grep -c OPTIMIZED)" = 1 ]
}

for how in alternate deep; do
	start "$BIN" "$how"
	snapshot "$PID" loose >"$T/before"
	for where in window copy; do
		: >"$T/out"
		[ $where = copy ] || say window
		[ $where = copy ] || await '^parked'
		stat_start 1 "p:w ${BIN##*/}:work"
		[ $where = window ] || within 30 jumped || fail "$how: no jump comes"
		[ $where = window ] || say copy
		await '^parked'
		# The jump, or the copy, is not touched while it is parked.
		[ $where = copy ] || await '^free'
		[ $where = copy ] || within 30 jumped || fail "$how: no jump comes when it is free"
		stat_end
		await '^free'
		assert_untouched "$PID" "$T/before" loose
	done
	say end
	await '^done'
	eq "$(value wrong)" 0 "$how: wrong"
done
