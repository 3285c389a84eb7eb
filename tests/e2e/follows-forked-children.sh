#!/bin/bash
# SPDX-License-Identifier: MIT
# With --follow, what a server forks while it is probed hits and records as its master
# does, to the unit, and nobody else's children do; clients that come later leave the
# workers that they don't know alone, and all are as they were in the end.
. tests/e2e/lib.sh
build forks dynamic gcc
N=300

tell()
{
	: >"$T/out"
	say "$*"
	await '^done' 60
	[[ $1 = go ]] || WORKERS+=("$(value worker)")
}

go()
{
	tell go $N
	eq "$(value wrong)" 0 "$1: wrong"
	eq "$(value answers)" "$2" "$1: answers"
}

jumped()
{
	[ "$("$UKP" list -p "$PID" | grep -c '\[OPTIMIZED\]')" -ge "$1" ]
}

lines_of()
{
	grep -c "^ *forks.dynamic-$1 .*: $2: " "$T/trace" || true
}

clean()
{
	local pid

	for pid in "$PID" "${WORKERS[@]}"; do
		alive "$pid" || continue
		verified "$pid" || fail "$1: $pid: $(cat "$T/verify")"
		! grep -q memfd:ukprobes "/proc/$pid/maps" || fail "$1: $pid has mappings of ours"
	done
	[ $# = 1 ] || go "$1" "$2"
}

# second PLANTED CMD ARG...: another client, until so many places are planted
second()
{
	"$UKP" "$2" -f -p "$PID" "${@:3}" >"$T/said" 2>&1 &
	SECOND=$!
	PIDS+=("$SECOND")
	within 20 planted "$PID" "$1" || fail "$2: the second was not planted"
}

second_end()
{
	kill -INT "$SECOND"
	wait "$SECOND" || fail "the second: $(cat "$T/said")"
}

begin()
{
	WORKERS=()
	start "$BIN"
	tell fork # nobody's that is probed
}

for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	begin
	# fork() returns twice, and is recorded where it was called.
	trace_start 3 -f 'p:w work $arg1' 'r:back work $retval' 'r:forked fork $retval:s32'
	tell fork
	[ $form = 0 ] || within 30 jumped 1 || fail "no jump: $("$UKP" list -p "$PID")"
	tell fork
	tell deep
	PIDS+=("${WORKERS[@]}")
	go "form $form" 3
	# One that comes later, to the same place, and whose memory the workers don't have.
	second 5 trace -o "$T/second" 'p:x work' 'r:y work'
	go "form $form, two" 3
	second_end
	figures "$T/said"
	eq "$HITS $RECORDS" "$((2 * N)) $((2 * N))" "hits and records of the second"
	go "form $form, the second gone" 3
	kill -9 "${WORKERS[1]}"
	trace_end
	eq "$HITS $RECORDS" "$((18 * N + 3)) $((18 * N + 3))" "hits and records, form $form"
	eq "$(grep -c ': forked: .*arg1=[1-9]' "$T/trace")" 3 "calls of fork()"
	# The master, the first that it forked since, and a worker's worker.
	for pid in "$PID" "${WORKERS[1]}" "${WORKERS[3]}"; do
		eq "$(lines_of "$pid" w) $(lines_of "$pid" back)" "$((3 * N)) $((3 * N))" "lines of $pid"
	done
	# Its master would get SIGPIPE.
	clean "form $form"
done

# Counted and timed in place.
begin
stat_start 1 -f 'p work'
within 30 jumped 1 || fail "no jump: $("$UKP" list -p "$PID")"
tell fork
go counted 2
second 2 latency -o "$T/latency" work
within 30 jumped 2 || fail "no jumps: $("$UKP" list -p "$PID")"
tell fork
PIDS+=("${WORKERS[@]}")
go "counted and timed" 3
second_end
stat_end
eq "$(awk '$2 ~ /^work/ { print $1 }' "$T/table")" $((5 * N)) "counted"
grep -Eq "work.*\b$((2 * N))\b" "$T/latency" || fail "timed: $(cat "$T/latency")"
clean "counted" 3

# Whoever doesn't ask for it has the master's alone.
begin
stat_start 1 'p work'
second 2 stat -o "$T/other" 'p work'
tell fork
PIDS+=("${WORKERS[@]}")
go "side by side" 2
second_end
stat_end
eq "$(awk '$2 ~ /^work/ { print $1 }' "$T/table")" "$N" "counted without"
eq "$(awk '$2 ~ /^work/ { print $1 }' "$T/other")" $((2 * N)) "counted with"
clean "side by side" 2

# Killed brokers leave children that pass through.
begin
trace_start 2 -f 'p work' 'r work'
tell fork
PIDS+=("${WORKERS[@]}")
go "before the kill" 2
kill_both
go orphaned 2
within 30 cured || fail "cure: $(cat "$T/cure")"
clean "cured" 2

# What can't be had is said.
! "$UKP" trace -f --ret=exit -p "$PID" 'r work' >"$T/said" 2>"$T/err" || fail "exit sites were planted"
grep -q 'ret=slot' "$T/err" || fail "it isn't said what to do: $(cat "$T/err")"
