#!/bin/bash
# SPDX-License-Identifier: MIT
# A thread that stands where a jump is to be written is moved out of the way; a
# saved context that leads there keeps the jump away until it has gone.
. tests/e2e/lib.sh
build inside dynamic gcc

# jumped FUNCTION
jumped()
{
	"$UKP" list -p "$PID" | grep -q " $1+0x0 .* jump\$"
}

# Is there a breakpoint two bytes into other()?
armed()
{
	[ "$(dd if="/proc/$PID/mem" bs=1 skip=$((16#$OTHER + 2)) count=1 2>>/dev/null | od -An -tx1)" = " cc" ]
}

# Then halts the broker, but not while it holds the target.
halted()
{
	armed || return 1
	kill -STOP "$BROKER"
	within 20 grep -q '^State:.T' "/proc/$BROKER/status"
	grep -q '^TracerPid:.0$' "/proc/$PID/status" && return
	kill -CONT "$BROKER"
	return 1
}

start "$BIN"
await '^faulted'
snapshot "$PID" loose >"$T/before"
trace_start 3 'p waits' 'p faulty' 'p other'
within 30 jumped other || fail "no jump where nobody is"
within 30 jumped waits || fail "no jump over a thread in a call: $("$UKP" list -p "$PID")"
# Written in one stop, if at all.
! jumped faulty || fail "a jump over the place that a handler will return to"
for i in 1 2 3; do
	say wake
	await "^woke $i\$"
done
say repair
await '^repaired 1$'
# The handler has gone; another client's coming and going has all tried again.
"$UKP" trace -p "$PID" --for 0.1 -o "$T/second" 'p:again other' 2>"$T/second.err" || fail "$(cat "$T/second.err")"
within 30 jumped faulty || fail "no jump when the handler has gone: $("$UKP" list -p "$PID")"
within 30 jumped waits || fail "the jump doesn't come back: $("$UKP" list -p "$PID")"
say wake
await '^woke 4$'
say repair
await '^repaired 2$'
say other
await '^called'

# While a handler waits above our own frame no jump can come, and those that were
# there are breakpoints again, which pass by no new probe inside their windows:
# the broker is halted before it could make new windows of them.
OTHER=$("$UKP" list -p "$PID" | awk '/ other\+0x0 / { print $1 }')
BROKER=$(broker_of "$PID")
PIDS+=("$BROKER")
: >"$T/out"
say fault
await '^faulted'
"$UKP" trace -p "$PID" -n 1 -o "$T/second" 'p:in other+2' 2>"$T/second.err" &
SECOND=$!
PIDS+=("$SECOND")
end=$((SECONDS + PATIENCE))
until halted; do
	[ $SECONDS -le $end ] || fail "the second one isn't planted"
done
say other
await '^called'
kill -CONT "$BROKER"
within 20 gone "$SECOND" || fail "a probe inside the window of a jump that was there isn't hit"
eq "$(grep -c ' in: ' "$T/second")" 1 "hits inside"
! jumped other || fail "a jump while our frame is on a stack"
say repair
await '^repaired 3$'
trace_end
# Calls since the start: four of the first, two of the second.
for pair in waits:4 faulty:2 other:2; do
	eq "$(grep -c " p_${pair%:*}_0: " "$T/trace")" "${pair#*:}" "hits of ${pair%:*}"
done
assert_untouched "$PID" "$T/before" loose
say wake
await '^woke 5$'
say repair
await '^repaired 4$'
