#!/bin/bash
# SPDX-License-Identifier: MIT
# hits = records + misses to the unit, and hits are the true counts: recursion,
# threads born and dying, a SIGPROF handler that calls the probed function,
# maxactive set and unset, several probes on one function, two sessions.
. tests/e2e/lib.sh
build counter dynamic gcc
CALLS=${LONG:+20000}
CALLS=${CALLS:-3000}

run()
{
	: >"$T/out" # what was said the last time
	say go
	await '^done' 60
	eq "$(value wrong)" 0 "wrong results in the target"
}

# lines EVENT: how many the trace has
lines()
{
	grep -c ": $1: (" "${2:-$T/trace}" || true
}

for mode in "" recurse=30 born sigprof "recurse=10 born sigprof"; do
	# shellcheck disable=SC2086 # words
	start "$BIN" 4 "$CALLS" $mode
	snapshot "$PID" loose >"$T/before"
	trace_start 5 'p:e work' 'r:x work $retval $duration' 'p:second work+0 $arg1' \
		'r:rr recurse $retval' 'p:t tick'
	run
	trace_end
	work=$(value work) rec=$(value recurse) tick=$(value tick)
	eq "$HITS" $((3 * work + rec + tick)) "$mode: hits"
	if [ "$MISSES" = 0 ]; then
		eq "$(lines e)" "$work" "$mode: entries"
		eq "$(lines second)" "$work" "$mode: second probe"
		eq "$(lines x)" "$work" "$mode: returns"
		eq "$(lines rr)" "$rec" "$mode: recursive returns"
		eq "$(lines t)" "$tick" "$mode: ticks"
	fi
	eq "$(wc -l <"$T/trace")" "$RECORDS" "$mode: lines"
	assert_untouched "$PID" "$T/before" loose
	say end
	echo "${mode:-plain}: $HITS hits$WHY"
done

# maxactive 2 of a recursion that goes 30 deep: two a descent, the rest missed.
start "$BIN" 1 1600 recurse=30
trace_start 2 'r2:two recurse $retval' 'r:all recurse $retval'
run
trace_end
rec=$(value recurse)
eq "$HITS" $((2 * rec)) "maxactive: hits"
eq "$(lines all)" "$rec" "arena: records"
eq "$(lines two)" $((rec / 31 * 2)) "maxactive: records"
eq "$WHY" " (maxactive $((rec - rec / 31 * 2)))" "maxactive: reason"

# Two sessions at once on the same function, one broker; each leaves alone.
start "$BIN" 2 "$CALLS"
snapshot "$PID" loose >"$T/before"
trace_start 1 'r:one work $retval'
"$UKP" trace -p "$PID" -o "$T/trace2" 'r2:two work $retval' 'p:three work' 2>"$T/err2" &
SECOND=$!
PIDS+=("$SECOND")
within 20 planted "$PID" 3
eq "$(broker_of "$PID" | wc -l)" 1 "brokers"
run
work=$(value work)
trace_end
eq "$HITS" "$work" "first session: hits"
eq "$(lines one)" "$RECORDS" "first session: lines"
run
kill -INT "$SECOND"
wait "$SECOND" || fail "the second ended with $?"
figures "$T/err2"
eq "$HITS" $((2 * $(value work))) "second session: hits"
eq "$(value work)" $((2 * work)) "second round"
eq "$(wc -l <"$T/trace2")" "$RECORDS" "second session: lines"
within 10 eval '[ -z "$(broker_of '"$PID"')" ]' || fail "the broker stays"
assert_untouched "$PID" "$T/before" loose
