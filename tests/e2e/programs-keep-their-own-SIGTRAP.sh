#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that handles SIGTRAP, or ignores it, is probed all the same: each of
# its own, from int3, raise(), kill() or sigqueue(), reaches its handler with its
# siginfo, mask and place, and sigaction() reads back what it has set, also what it
# sets while it is probed; its handler may hit probes.  After the detach all is as
# it was.  A default SIGTRAP ends the program as ever.
. tests/e2e/lib.sh

N=50

# own MODE TRAPS-A-ROUND WAYS: the mode of the target, before, under and after probes
own()
{
	local mode=$1 traps=$2 ways=$3

	start "$BIN" "$mode"
	snapshot "$PID" >"$T/before"
	for _ in 1 2; do
		: >"$T/out"
		trace_start 2 'p work' 'r work'
		say "go $N"
		await '^done'
		trace_end
		eq "$STATUS" 0 "$mode: status"
		eq "$(value wrong)" 0 "$mode: wrong"
		eq "$(value traps)" $((N * traps)) "$mode: traps"
		eq "$(value work)" $((N * (ways + traps))) "$mode: calls"
		eq "$HITS" $((2 * N * (ways + traps))) "$mode: hits"
		eq "$RECORDS" "$HITS" "$mode: records"
		assert_untouched "$PID" "$T/before"
	done
	: >"$T/out"
	say "go $N"
	await '^done'
	eq "$(value wrong)" 0 "$mode, after: wrong"
	eq "$(value traps)" $((N * traps)) "$mode, after: traps"
}

# ends HOW: by default, with the probes in
ends()
{
	local status=0

	start "$BIN" default
	trace_start 1 'p work'
	say "$1"
	wait "$PID" 2>>/dev/null || status=$?
	eq "$status" $((128 + 5)) "default, $1: the target's status"
	trace_wait
	eq "$HITS" 1 "default, $1: hits"
}

build traps dynamic gcc
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	own handled 4 4
	own late 4 4
	own ignored 0 3
	ends int3
	ends raise
done
