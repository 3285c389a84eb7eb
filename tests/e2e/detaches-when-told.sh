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
[ $ms -ge 1000 ] && [ $ms -lt 10000 ] || fail "--for 1 took $ms ms"
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
timeout 20 "$UKP" trace -p "$PID" -n 100000 -o /dev/full "$DEF" 2>"$T/err" || status=$?
eq $status 1 "a full disk: status"
grep -q 'No space' "$T/err" || fail "a full disk: no reason"
assert_untouched "$PID" "$T/before"
say x
await '^pong x'
eq "$(value wrong)" 0 "wrong results"
