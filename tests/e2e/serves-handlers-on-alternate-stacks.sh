#!/bin/bash
# SPDX-License-Identifier: MIT
# A breakpoint in a signal handler on an alternate stack is hit like any other
# where there is room for the frames of signals that nest, and some for the agent;
# where there isn't, who attaches is warned.
. tests/e2e/lib.sh
build altstack dynamic gcc
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	start "$BIN" 12
	snapshot "$PID" >"$T/before"
	trace_start 1 'r work'
	for i in 1 2 3; do
		say go
		await "^calls $i"
	done
	trace_end
	eq "$HITS" 3 hits
	eq "$RECORDS" 3 records
	! grep -q warning "$T/err" || fail "a warning"
	assert_untouched "$PID" "$T/before"
done

start "$BIN" 3
snapshot "$PID" >"$T/before"
trace_start 1 'p work'
trace_end
eq "$(grep -c '^ukprobe: warning: its alternate signal stack .* -> ' "$T/err")" 1 "warnings"
assert_untouched "$PID" "$T/before"
say go
await '^calls 1'
