#!/bin/bash
# SPDX-License-Identifier: MIT
# A fault handler that goes on behind the faulting instruction, which is in the
# middle of a jump of ours, comes out right, past the probes that are there.
. tests/e2e/lib.sh
build skips dynamic gcc

listed()
{
	[ "$("$UKP" list -p "$PID" | grep -c '\[OPTIMIZED\]')" -ge "$1" ]
}

# Hits of each place of a function, in the order of addresses.
hits()
{
	awk -v f="^$1\\\\+" '$2 ~ f { print $2, $1 }' "$T/table" | sort -t+ -k2 | awk '{ printf "%s%s", s, $2; s = " " } END { print "" }'
}

go()
{
	: >"$T/out"
	say go 1000
	await '^done'
	eq "$(value wrong)" 0 "$1: wrong results"
}

start "$BIN"
go "without probes"
eq "$(value skipped)" 1000 "skipped"
snapshot "$PID" loose >"$T/before"

# One probe at the entry, and the handler's way in the middle of its jump.
trace_start 2 'p:l loads' 'p:d divides $arg1:u32'
within 30 listed 2 || fail "no jumps: $("$UKP" list -p "$PID")"
go "entries"
eq "$(value skipped)" 2000 "skipped"
trace_end
eq "$HITS $RECORDS" "2000 2000" "hits and records"
assert_untouched "$PID" "$T/before" loose

# Each instruction has one: all are passed once a call.
"$UKP" stat -p "$PID" -o "$T/table" 'p loads+*' 'p divides+*' 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 30 listed 9 || fail "too few jumps: $("$UKP" list -p "$PID")"
go "each instruction"
eq "$(value skipped)" 3000 "skipped"
kill -INT "$TRACE"
wait "$TRACE" || fail "stat failed: $(cat "$T/err")"
eq "$(hits loads)" "1000 1000 1000" "instructions of loads"
eq "$(hits divides)" "1000 1000 1000 1000 1000 1000" "instructions of divides"
assert_untouched "$PID" "$T/before" loose
