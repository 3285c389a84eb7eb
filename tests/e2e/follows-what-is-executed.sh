#!/bin/bash
# SPDX-License-Identifier: MIT
# With --follow a run goes on in the program that its process executes: with the
# definitions that are found there, and says which; its end is the last one's.
. tests/e2e/lib.sh
build successor dynamic gcc

told()
{
	grep -qF -- "$1" "$T/err" || fail "it isn't said: $1: $(cat "$T/err")"
}

begin()
{
	"$UKP" "$@" 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
}

executes()
{
	: >"$T/out"
	say exec
	await '^ready'
}

# Twice into itself: each time what is found is planted, and hit.
start "$BIN"
ADDR=$("$UKP" funcs -p "$PID" work | cut -f2)
begin trace -p "$PID" --follow -o "$T/trace" 'p:w work $arg1' 'r:x work $retval' "p:a $ADDR"
within 20 planted "$PID" 3 || fail "nothing was planted"
for round in 1 2; do
	executes
	within 20 eval '[ "$(grep -c "go on in it" "$T/err")" = '$round' ]' || fail "round $round: it isn't followed: $(cat "$T/err")"
	within 20 planted "$PID" 2 || fail "round $round: nothing is planted"
	say one
	say two
	within 20 eval '[ "$(grep -c " w: " "$T/trace")" = '$((2 * round))' ]' ||
		fail "round $round: $(cat "$T/trace")"
done
kill -INT "$TRACE"
trace_wait
eq "$STATUS" 0 status
told "process $PID has executed another program, $(readlink -f "$BIN"): 2 of 3 definitions go on in it"
told "not in this program: p:a $ADDR: an address is of one program only"
eq "$(grep -c ' x: ' "$T/trace")" 4 "returns"
eq "$(grep -c ' hits, ' "$T/err")" 3 "a summary for each"
verified "$PID" || fail "verify: $(cat "$T/verify")"
kill -9 "$PID"

# Into one that has none of them: that is said, and is the end.
start bash -c 'echo ready; read -r line; exec sleep 100000'
begin stat -p "$PID" --follow -o "$T/table" 'p execute_command'
within 20 planted "$PID" 1 || fail "nothing was planted in the shell"
say go
within 20 gone "$TRACE" || fail "it goes on in a program that has nothing of it: $(cat "$T/err")"
wait "$TRACE" || fail "none: status $?"
told "not in this program: p execute_command: "
told ": 0 of 1 definitions go on in it"
verified "$PID" || fail "verify: $(cat "$T/verify")"
kill -9 "$PID"

# A command's status is that of the program that it becomes.
STATUS=0
"$UKP" trace --follow -o "$T/trace" 'p execute_command' -- bash -c 'exec sh -c "sleep 0.3; exit 7"' 2>"$T/err" || STATUS=$?
eq "$STATUS" 7 "the command's status"
told ": 0 of 1 definitions go on in it"
