#!/bin/bash
# SPDX-License-Identifier: MIT
# A program whose main thread blocks SIGTRAP, to take it by sigwait() or signalfd(), or
# as it blocks all signals, is probed by jumps alone: each hit counts, it gets each of
# its signals, and what can't be had is refused with its reason.
. tests/e2e/lib.sh
build sigwaits dynamic gcc
N=1000

go()
{
	: >"$T/out"
	say "go $N"
	await '^done' 60
	eq "$(value wrong) $(value taken)" "0 $((N / 100))" "$1: wrong, and signals taken"
}

# refused REGEX ARG...
refused()
{
	local why=$1

	shift
	! "$UKP" "$@" >"$T/said" 2>"$T/err" || fail "$*: planted all the same"
	grep -Eq -- "$why" "$T/err" || fail "$*: the reason isn't '$why'"
}

jumps()
{
	"$UKP" list -p "$PID" | grep -c '\[OPTIMIZED\] jump$' || true
}

for how in signalfd 'sigwait all'; do
	# shellcheck disable=SC2086
	start "$BIN" $how
	go "$how, before"
	snapshot "$PID" >"$T/before"
	trace_start 1 'p:w work n=$arg1:u32'
	grep -q 'warning: a thread blocks SIGTRAP' "$T/err" || fail "$how: no warning"
	# It is there when the start is over.
	within 20 eval '[ "$(jumps)" = 1 ]' || fail "$how: $("$UKP" list -p "$PID")"
	go "$how, traced"
	"$UKP" stat -p "$PID" -o "$T/table" 'p work' >"$T/said" 2>&1 &
	SECOND=$!
	PIDS+=("$SECOND")
	within 20 eval '[ "$(jumps)" = 2 ]' || fail "$how, two: $("$UKP" list -p "$PID")"
	go "$how, counted, too"
	kill -INT "$SECOND"
	wait "$SECOND" || fail "$how: stat: $(cat "$T/said")"
	eq "$(awk '$2 ~ /^work/ { print $1 }' "$T/table")" "$N" "$how: counted"
	trace_end
	eq "$HITS $RECORDS" "$((2 * N)) $((2 * N))" "$how: hits and records"
	grep -q "w: (work+0x0/.*) n=$((N - 1))\$" "$T/trace" || fail "$how: $(tail -1 "$T/trace")"
	assert_untouched "$PID" "$T/before"
done

# All of it at once: some are refused, the rest counts.  The attach serves what follows, too.
stat_start 3 "f $(basename "$BIN"):*"
go "all functions"
cp "$T/err" "$T/err.all"
refused 'blocks SIGTRAP, and a breakpoint kills it; and no jump can stand there' trace -p "$PID" 'p tiny'
refused 'blocks SIGTRAP: returns' trace -p "$PID" 'r work'
refused 'blocks SIGTRAP: returns' latency -p "$PID" work
refused 'only registers' trace -p "$PID" 'p work +0($arg1)'
refused "the linker can't be watched" trace -p "$PID" 'p liblate.so:f'
stat_end
grep -q 'places are not probed: .*blocks SIGTRAP' "$T/err.all" || fail "nothing is refused: $(cat "$T/err.all")"
eq "$(awk '$2 ~ /^work/ { print $1 }' "$T/table")" "$N" "counted among all"
assert_untouched "$PID" "$T/before"
(
	export UKPROBES_OPTIMIZATION=0
	refused 'no jump can stand there: optimization is off' trace -p "$PID" 'p work'
)
assert_untouched "$PID" "$T/before"

# Whoever kills the broker leaves jumps, which do no harm.
trace_start 1 'p work'
kill_both
go "orphaned"
within 30 cured || fail "cure: $(cat "$T/cure")"
go "cured"
assert_untouched "$PID" "$T/before"
