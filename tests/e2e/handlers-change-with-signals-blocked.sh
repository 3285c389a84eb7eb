#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that changes handlers while it blocks all signals lives on under probes,
# whenever they come and go; what it sets itself, SIGTRAP's among it, stays its own.
# With optimization off as well: our own probe at sigaction() is never a breakpoint.
. tests/e2e/lib.sh
build blocksets plain gcc
start "$BIN"
snapshot "$PID" >"$T/before"
N=${LONG:+100}
N=${N:-6}
sets()
{
	: >"$T/out"
	say "$1"
	[ "${2:-}" = later ] || await '^wrong'
}
for i in $(seq "$N"); do
	export UKPROBES_OPTIMIZATION=$((i % 3 != 0))
	sets go later
	if [ $((i % 3)) -ne 0 ]; then
		stat_start 2 'p probed' 'p uv__signal_register_handler'
	else
		stat_start 1 'p probed'
	fi
	await '^wrong'
	eq "$(value wrong)" 0 "round $i: wrong while probes came"
	sets own
	eq "$(value wrong)" 0 "round $i: wrong while they were in"
	sets go later
	stat_end
	await '^wrong'
	eq "$(value wrong)" 0 "round $i: wrong while they went"
	verified "$PID" || fail "verify: $(cat "$T/verify")"
done
grep -v -e ^SigCgt "$T/before" >"$T/other"
snapshot "$PID" | grep -v -e ^SigCgt | diff "$T/other" - || fail "the target has changed"
say end
