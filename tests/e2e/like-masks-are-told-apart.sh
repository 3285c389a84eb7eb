#!/bin/bash
# SPDX-License-Identifier: MIT
# A thread that has all signals blocked has some kept open under probes; others have just
# these open, or some of them, of their own and handle SIGSEGV.  None of them gets it
# blocked, neither under probes nor by the detach, whenever its mask was set.
. tests/e2e/lib.sh
build likemasks dynamic gcc
N=200

# Four threads handle faults and signals, five call.
go()
{
	: >"$T/out"
	say "go $N"
	await '^done'
	eq "$(value faults) $(value handled) $(value calls)" "$((4 * N)) $((4 * N)) $((5 * N))" "$1"
}

for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	for when in before since; do
		start "$BIN" $when
		go "form $form, $when: at first"
		trace_start 1 'p:w work'
		: >"$T/out"
		say set
		await '^done'
		go "form $form, $when: under probes"
		trace_end
		eq "$HITS" $((5 * N)) "form $form, $when: hits"
		go "form $form, $when: afterwards"
		verified "$PID" || fail "verify: $(cat "$T/verify")"
		kill -9 "$PID"
	done
done
