#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that closes all descriptors it doesn't know, as daemons do, closes none of
# ours: hits are recorded after it, probes come, go and are cured.
. tests/e2e/lib.sh

tell()
{
	: >"$T/out"
	say "$1"
	await '^done'
}

work()
{
	tell "call 10"
	eq "$(value sum)" 110 "its own result"
}

build closes dynamic gcc
start "$BIN"
tell close
snapshot "$PID" >"$T/before"
trace_start 1 'p work'
work
tell close
work
# One more client, and one less, after it.
"$UKP" stat -p "$PID" --for 1 'r work' >"$T/stat" 2>&1 &
second=$!
within 30 eval '[ "$("$UKP" list -p "$PID" | grep -c work)" = 2 ]'
tell close
work
wait $second || fail "the second: $(cat "$T/stat")"
grep -q ' 10 .*work' "$T/stat" || fail "the second counted: $(cat "$T/stat")"
trace_end
eq "$HITS $RECORDS" "30 30" "hits and records"
assert_untouched "$PID" "$T/before"

trace_start 1 'p work'
tell close
kill_both
work
cured || fail "cure: $(cat "$T/cure")"
work
assert_untouched "$PID" "$T/before"
