#!/bin/bash
# SPDX-License-Identifier: MIT
# A function that blocks all signals and returns so: a breakpoint at its exit
# would kill, so there is none, before the jumps come and after.
. tests/e2e/lib.sh
build returns blocked gcc -O2

round()
{
	: >"$T/out"
	say block
	await '^blocked 4950'
}

exits()
{
	"$UKP" list -p "$PID" | grep -q 'ret=exit (all'
}

start "$BIN"
snapshot "$PID" >"$T/before"
for i in 1 2 3; do
	trace_start 1 'r:b block $retval:s64'
	round
	within 20 exits || fail "no exit sites: $("$UKP" list -p "$PID")"
	round
	trace_end
	eq "$HITS $RECORDS" "200 200" "calls, before and after the jumps"
	round
	assert_untouched "$PID" "$T/before"
done

# While it runs the probe comes and goes.
{ for i in $(seq 40); do echo block; done; echo all; } >&9
for i in $(seq 10); do
	"$UKP" stat -p "$PID" --for 0.06 'r block' >"$T/table" 2>"$T/err" || fail "stat: $(cat "$T/err")"
done
await '^sum' 60
verified "$PID" || fail "verify: $(cat "$T/verify")"
