#!/bin/bash
# SPDX-License-Identifier: MIT
# The threads of timers with SIGEV_THREAD block all signals.  Where the timer is
# there already they are probed like others; where it may come, who attaches is
# warned.
. tests/e2e/lib.sh
build timers dynamic gcc -lrt
export UKPROBES_OPTIMIZATION=0

start "$BIN" early
"$UKP" doctor -p "$PID" >"$T/doctor" || fail "doctor: $(cat "$T/doctor")"
if [ -r "/proc/$PID/timers" ]; then
	! grep -q SIGEV_THREAD "$T/doctor" || fail "early: the doctor warns"
else
	without "timers that are there" "this kernel doesn't list timers"
fi
trace_start 1 'p work'
for i in 1 2 3; do
	: >"$T/out"
	say go
	await '^fired'
done
trace_end
eq "$HITS" 3 "early: hits"
[ ! -r "/proc/$PID/timers" ] || ! grep -q warning "$T/err" || fail "early: a warning"
verified "$PID" || fail "early: $(cat "$T/verify")"

start "$BIN"
"$UKP" doctor -p "$PID" >"$T/doctor" || fail "doctor: $(cat "$T/doctor")"
grep -q '^warn  threads .*SIGEV_THREAD.* -> ' "$T/doctor" || fail "late: $(cat "$T/doctor")"
trace_start 1 'p work'
trace_end
eq "$(grep -c '^ukprobe: warning: .*SIGEV_THREAD.* -> ' "$T/err")" 1 "late: warnings"
verified "$PID" || fail "late: $(cat "$T/verify")"
: >"$T/out"
say go
await '^fired'

build aio dynamic gcc
start "$BIN"
"$UKP" doctor -p "$PID" >"$T/doctor" || fail "doctor: $(cat "$T/doctor")"
grep -q "^warn  threads .*aio.* -> " "$T/doctor" || fail "aio: $(cat "$T/doctor")"
trace_start 1 'p work'
eq "$(grep -c "^ukprobe: warning: .*aio.* -> " "$T/err")" 1 "aio: warnings"
say go
await '^read 4'
trace_end
eq "$HITS" 1 "aio: hits"
verified "$PID" || fail "aio: $(cat "$T/verify")"

build counter dynamic gcc
start "$BIN" 1 1
trace_start 1 'p work'
trace_end
! grep -q warning "$T/err" || fail "a program without timers: a warning"
