#!/bin/bash
# SPDX-License-Identifier: MIT
# Process 1 of a namespace doesn't get signals that would end it: it goes on under probes,
# and with probes, when somebody sends it those that ours are told by.
. tests/e2e/lib.sh
unshare -pf true 2>/dev/null || skip "no namespace of processes can be made here"
build init dynamic gcc

inside()
{
	IN=$(pgrep -P "$UNSHARE" -x "$(basename "$BIN" | cut -c1-15)")
}

for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	start unshare -pf --kill-child "$BIN"
	UNSHARE=$PID
	within 10 inside || fail "it does not start"
	PID=$IN
	eq "$(value pid)" 1 "its number"
	snapshot "$PID" >"$T/before"
	trace_start 1 'p:w work'
	for _ in 1 2; do
		: >"$T/out"
		say 100
		await '^done'
		eq "$(value calls)" 100 "form $form: calls"
	done
	trace_end
	eq "$HITS" 200 "form $form: hits"
	assert_untouched "$PID" "$T/before"
	kill -9 "$UNSHARE"
done
