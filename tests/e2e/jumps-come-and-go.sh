#!/bin/bash
# SPDX-License-Identifier: MIT
# The jump form replaces breakpoints while threads run through them, and gives
# way whenever something else changes: no call is missed, none is wrong.
. tests/e2e/lib.sh
build counter dynamic gcc
ROUNDS=${LONG:+300}
ROUNDS=${ROUNDS:-15}

optimized()
{
	[ "$("$UKP" list -p "$PID" | grep -c 'OPTIMIZED.* jump$')" -ge "$1" ]
}

start "$BIN" 4 20000 recurse=4 usec=10 sigprof
snapshot "$PID" loose >"$T/before"
trace_start 3 'p:e work' 'r:x work $retval' 'r:rr recurse $retval'
within 20 optimized 3 || fail "no jump came: $("$UKP" list -p "$PID")"
: >"$T/out"
asked=0

# Whether it still works at what it was asked for, or has done so with all.
answered()
{
	[ "$(grep -c '^done' "$T/out")" -ge "$asked" ]
}

# It is never without work, however slow the others are.
busy()
{
	if answered; then
		say go
		asked=$((asked + 1))
	fi
	gone "$1"
}

seen=0
for i in $(seq "$ROUNDS"); do
	# A second client: its coming and going takes all jumps out and in again.
	"$UKP" trace -p "$PID" -n 50 "p:other work+0 \$arg1" 'p:t tick' >"$T/second" 2>&1 &
	second=$!
	PIDS+=("$second")
	within 60 busy "$second" || fail "the second client doesn't end: $(cat "$T/second")"
	wait "$second" || fail "$(cat "$T/second")"
	[ "$(grep -cE ': (other|t): \(' "$T/second")" -ge 50 ] || fail "the second client saw too little"
	if shortly 2 optimized 3; then
		seen=$((seen + 1))
	fi
done
within 120 answered || fail "the target doesn't come to an end"
within 60 optimized 3 || fail "no jump came back"
eq "$(value wrong)" 0 "wrong results in the target"
trace_end
work=$(value work) rec=$(value recurse)
eq "$HITS" $((2 * work + rec)) "hits"
eq "$HITS" $((RECORDS + MISSES)) "hits are records and misses"
assert_untouched "$PID" "$T/before" loose
say end
echo "$ROUNDS rounds, jumps seen again in $seen, $HITS hits$WHY"
