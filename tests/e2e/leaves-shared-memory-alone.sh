#!/bin/bash
# SPDX-License-Identifier: MIT
# A process that runs in the target's memory without being its thread is not
# stopped with it: no jump is written while there is one, and where a breakpoint
# would kill it, the attach is refused.
. tests/e2e/lib.sh
build sharer dynamic gcc

ask()
{
	: >"$T/out"
	say "$1"
	await '^done'
}

form()
{
	"$UKP" list -p "$PID" | grep 'work+0x0' | grep -q "$1"
}

# --- dispositions of its own: refused --------------------------------------------
start "$BIN"
snapshot "$PID" loose >"$T/before"
ask share
other=$(value pid)
if "$UKP" trace -p "$PID" --for 0.1 'p work' >"$T/trace" 2>"$T/err"; then
	fail "a process that a probe would kill is no hindrance"
fi
grep -q "shares its memory with process $other " "$T/err" || fail "no reason is given"
alive "$other" || fail "the other process has died"
ask alone
assert_untouched "$PID" "$T/before" loose
trace_start 1 'p work'
ask 'calls 7'
trace_end
eq "$HITS" 7 "hits, when it is alone"
kill -9 "$PID"

# --- shared dispositions: breakpoints, and jumps when it has gone ----------------
start "$BIN" handlers
snapshot "$PID" loose >"$T/before"
ask share
other=$(value pid)
trace_start 1 'p work'
within 30 form 'another process shares the memory' || fail "jumps: $("$UKP" list -p "$PID")"
alive "$other" || fail "the other process has died"
ask alone
# Another client's coming makes jumps be looked at again, once it has gone.
comes_again()
{
	"$UKP" trace -p "$PID" --for 0.1 'p main' >"$T/again" 2>&1
	shortly 10 form OPTIMIZED
}
within 30 comes_again || fail "no jump when it has gone: $("$UKP" list -p "$PID")"
ask 'calls 100'
trace_end
eq "$(value wrong)" 0 "wrong results"
[ "$HITS" -ge 100 ] || fail "only $HITS hits"
assert_untouched "$PID" "$T/before" loose
