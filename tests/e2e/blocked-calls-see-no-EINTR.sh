#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that waits in epoll_wait() for ever is attached to, left, and
# attached to again: it gets nothing but its events.
. tests/e2e/lib.sh
build epoll dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"
for i in 1 2 3 4 5; do
	trace_start 1 'r work $retval:s64'
	say "$i"
	within 10 grep -q 'arg1=-2$' "$T/trace" || fail "no record"
	trace_end
	eq "$HITS" 1 hits
	eq "$RECORDS" 1 records
	assert_untouched "$PID" "$T/before"
done
eq "$(grep -c '^epoll_wait 1 errno 0' "$T/out")" 5 "events"
eq "$(grep -c '^epoll_wait' "$T/out")" 5 "returns of epoll_wait"
