#!/bin/bash
# SPDX-License-Identifier: MIT
# Ctrl-C, SIGTERM, -n, --for, a reader that goes away: clean each time.
. tests/e2e/lib.sh
build burst dynamic gcc
start "$BIN" 2 20000
snapshot "$PID" >"$T/before"
DEF='r work $retval'

for sig in INT TERM HUP; do
	trace_start 1 "$DEF"
	within 10 test -s "$T/trace"
	kill -$sig "$TRACE"
	trace_wait
	eq "$STATUS" 0 "SIG$sig: status"
	eq "$(wc -l <"$T/trace")" "$RECORDS" "SIG$sig: lines"
	assert_untouched "$PID" "$T/before"
done
"$UKP" trace -p "$PID" -n 25 "$DEF" >"$T/trace" 2>"$T/err" || fail "-n: $?"
eq "$(wc -l <"$T/trace")" 25 "-n: lines"
figures "$T/err"
assert_untouched "$PID" "$T/before"
begin=$(date +%s%N)
"$UKP" trace -p "$PID" --for 1 "$DEF" >"$T/trace" 2>"$T/err" || fail "--for: $?"
ms=$((($(date +%s%N) - begin) / 1000000))
[ $ms -ge 1000 ] || fail "--for 1 took $ms ms"
figures "$T/err"
eq "$(wc -l <"$T/trace")" "$RECORDS" "--for: lines"
assert_untouched "$PID" "$T/before"
# The reader goes away: no error, and nothing stays.
set +o pipefail
"$UKP" trace -p "$PID" "$DEF" 2>"$T/err" | head -3 >"$T/trace"
eq "$(wc -l <"$T/trace")" 3 "head: lines"
within 10 eval '[ -z "$(broker_of '"$PID"')" ]' || fail "the broker stays"
assert_untouched "$PID" "$T/before"
# A disk that is full is an error that is told.
status=0
timeout "$PATIENCE" "$UKP" trace -p "$PID" -n 100000 -o /dev/full "$DEF" 2>"$T/err" || status=$?
eq $status 1 "a full disk: status"
grep -q 'No space' "$T/err" || fail "a full disk: no reason"
assert_untouched "$PID" "$T/before"
say x
await '^pong x'
eq "$(value wrong)" 0 "wrong results"
kill -9 "$PID"

# With another tracer in the way it is said what to do when that has gone;
# meanwhile the probes go on without harm.
if ! command -v strace >>/dev/null; then
	without "another tracer" "there is no strace"
	exit 0
fi
build counter dynamic gcc
start "$BIN" 1 1
snapshot "$PID" >"$T/before"
trace_start 1 'p work'
BROKER=$(broker_of "$PID")
strace -o /dev/null -p "$PID" 2>"$T/strace.err" &
STRACE=$!
PIDS+=("$STRACE")
within 10 grep -q attached "$T/strace.err"
trace_end
eq "$STATUS" 1 "traced: status"
grep -q "traced by.*cure -p $PID" "$T/err" || fail "traced: what to do isn't said"
within 20 gone "$BROKER" || fail "traced: the broker stays"
! verified "$PID" || fail "traced: nothing stayed"
kill "$STRACE"
wait "$STRACE" 2>>/dev/null || true
within 5 grep -q 'TracerPid:.0$' "/proc/$PID/status"
"$UKP" cure -p "$PID" >"$T/cure" || fail "cure: $(cat "$T/cure")"
assert_untouched "$PID" "$T/before"
say go
await '^done'
eq "$(value wrong)" 0 "traced: wrong results"
