#!/bin/bash
# SPDX-License-Identifier: MIT
# A target that executes another program: that is said, whatever it was that
# failed by it, and nothing is said of it that would be true of neither; nor of
# one that has ended.
. tests/e2e/lib.sh
build successor dynamic gcc

start "$BIN"
for cmd in trace latency stat; do
	def='p work'
	[ $cmd != latency ] || def=work
	"$UKP" $cmd -p "$PID" -o "$T/trace" "$def" 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 20 planted "$PID" 1 || fail "$cmd: nothing was planted"
	: >"$T/out"
	say exec
	await '^ready'
	within 20 gone "$TRACE" || fail "$cmd: it doesn't end"
	grep -q "^ukprobe: process $PID has executed another program" "$T/err" || fail "$cmd: that isn't said"
	verified "$PID" || fail "$cmd: $(cat "$T/verify")"
done
kill -9 "$PID"

# One that has only ended is no news, though its parent leaves it a zombie.
start sh -c 'exec 3<&0; "$0" <&3 3<&- & echo "child $!"; exec sleep 100000' "$BIN"
await '^child'
CHILD=$(sed -n 's/^child //p' "$T/out")
PIDS+=("$CHILD")
"$UKP" trace -p "$CHILD" -o "$T/trace" 'p work' 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 20 planted "$CHILD" 1 || fail "ended: nothing was planted"
kill -9 "$CHILD"
trace_wait
eq "$STATUS" 0 "ended: status"
[ -e "/proc/$CHILD" ] || fail "ended: somebody has waited for it"
grep -qE '^ukprobe: [0-9]+ hits, ' "$T/err" || fail "ended: no figures"
! grep -vE ' hits, | never hit' "$T/err" || fail "ended: more is said than that"
kill -9 "$PID"

# All the time.
start "$BIN" always
for i in $(seq 20); do
	"$UKP" verify -p "$PID" >"$T/verify" 2>&1 || true
	grep -qE "^process $PID is untouched|^ukprobe: process $PID keeps executing other programs" "$T/verify" ||
		fail "verify: $(cat "$T/verify")"
done
for i in $(seq 20); do
	"$UKP" trace -p "$PID" --for 0.1 -o "$T/trace" 'p work' 2>"$T/err" || true
	grep -qE "hits|process $PID (keeps executing other programs|has executed another program)" "$T/err" ||
		fail "trace: $(cat "$T/err")"
done
alive "$PID" || fail "the target died"
