#!/bin/bash
# SPDX-License-Identifier: MIT
# A thread that a library keeps with all signals blocked is probed all the same;
# after the detach its mask, and every other thread's, is what it was.
. tests/e2e/lib.sh
build disposition dynamic gcc
start "$BIN" full
snapshot "$PID" >"$T/before"
for i in 1 2 3; do
	: >"$T/out"
	trace_start 2 'p work' 'r work'
	say go
	await '^done'
	trace_end
	eq "$HITS" 2 hits
	eq "$RECORDS" 2 records
	assert_untouched "$PID" "$T/before"
done
