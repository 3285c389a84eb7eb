#!/bin/bash
# SPDX-License-Identifier: MIT
# A handler that blocks all signals while it runs is probed as anything else, whether
# it was set before the attach or is set later; the program reads its mask as it has
# set it, and has it again when the probes are gone.
. tests/e2e/lib.sh

tell()
{
	: >"$T/out"
	say "$*"
	await '^done'
	eq "$(value wrong)" 0 "$*: wrong"
}

# says FILE WHAT: look or raw, the last into the file
says()
{
	tell "$2"
	grep '^sig ' "$T/out" >"$1" || fail "it says nothing"
}

all()
{
	start "$BIN"
	says "$T/raw" raw
	says "$T/look" look
	grep -q 'sig 10 handler.*ffff' "$T/look" || fail "no handler with a full mask"
	snapshot "$PID" >"$T/before"

	trace_start 1 'p work'
	# Our probe on sigaction() may come some 20 ms later, as a jump.
	sleep 0.2
	says "$T/now" look
	diff "$T/look" "$T/now" || fail "what it reads has changed"
	tell raise 10 7
	tell late 12
	tell raise 12 5
	tell late 10
	tell raise 10 3
	tell open 28
	tell raise 28 2
	tell late 28
	tell open 28
	tell late 17
	tell none 17
	says "$T/set" look
	tell fork 10 2
	eq "$(value child)" 0 "a child: wrong"
	grep '^sig ' "$T/out" >"$T/now"
	diff "$T/set" "$T/now" || fail "what a child reads has changed"
	trace_end
	eq "$HITS" 17 "hits"
	# Of all that was set, as the kernel has it.
	says "$T/now" raw
	diff "$T/set" "$T/now" || fail "the kernel has something else than was set"
	tell none 12
	tell none 28
	says "$T/raw" raw
	assert_untouched "$PID" "$T/before"

	# Killed, and cured by another.
	trace_start 1 'p work'
	tell raise 10 2
	kill_both
	tell raise 10 2
	cured || fail "cure: $(cat "$T/cure")"
	says "$T/now" raw
	diff "$T/raw" "$T/now" || fail "the kernel has something else after the cure"
	assert_untouched "$PID" "$T/before"
	kill -9 "$PID"
	{ wait "$PID" || true; } 2>>/dev/null
}

build masks dynamic gcc
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	all
done

# Set while it starts, with probes in.
unset UKPROBES_OPTIMIZATION
printf 'raise 10 4\n' | "$UKP" trace -o "$T/trace" 'p work' -- "$BIN" >"$T/out" 2>"$T/err" || fail "launched: $?"
figures "$T/err"
eq "$HITS" 4 "launched: hits"
eq "$(value calls)" 4 "launched: calls"
eq "$(value wrong)" 0 "launched: wrong"
