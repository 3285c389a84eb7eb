#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that has all its memory locked, and what it maps later, doesn't get half a
# gigabyte of it by an agent; one whose address space is limited is left alone where its
# own allocations would fail; a limit of ours leaves nothing behind.
. tests/e2e/lib.sh

resident()
{
	sed -n 's/^VmRSS:\s*\([0-9]*\) kB/\1/p' "/proc/$PID/status"
}

locks()
{
	start "$BIN"
	if grep -q 'not locked' "$T/out"; then
		without "locked memory" "it may not lock all its memory here"
		return
	fi
	snapshot "$PID" >"$T/before"
	before=$(resident)
	for form in 0 1; do
		export UKPROBES_OPTIMIZATION=$form
		: >"$T/out"
		trace_start 2 'p:w work' 'r:x work'
		say 1000
		await '^done'
		now=$(resident)
		[ $((now - before)) -le 49152 ] || fail "form $form: $now KiB are resident, $before before"
		trace_end
		eq "$HITS" 2000 "form $form: hits"
		assert_untouched "$PID" "$T/before"
	done
	unset UKPROBES_OPTIMIZATION
}

# limited OPTION OF-WHAT
limited()
{
	local status=0

	spawn 8 prlimit "$1" sleep 60
	within 10 grep -q sleep "/proc/$PID/comm" || fail "it does not start"
	"$UKP" stat -p "$PID" --for 1 'p nanosleep' >"$T/said" 2>&1 || status=$?
	eq "$status" 1 "$1: $(cat "$T/said")"
	grep -q "(RLIMIT_$2).*its own allocations would fail; 'prlimit" "$T/said" || fail "$1: $(cat "$T/said")"
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	# As it says.
	eval "$(sed -n "s/.*'\(prlimit [^']*\)' is enough.*/\1/p" "$T/said")"
	"$UKP" stat -p "$PID" --for 1 'p nanosleep' >"$T/said" 2>&1 || fail "$1, raised: $(cat "$T/said")"
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	rm "$T/in.8"
}

build locked dynamic gcc
locks
limited --as=900000000: AS
limited --data=300000000: DATA
start "$BIN"
! (ulimit -f 1; "$UKP" stat -p "$PID" --for 1 'p work') >"$T/said" 2>&1 || fail "it works with files of 1 KiB"
grep -q 'File too large' "$T/said" || fail "a limit of files: $(cat "$T/said")"
verified "$PID" || fail "verify: $(cat "$T/verify")"
