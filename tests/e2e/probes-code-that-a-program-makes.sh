#!/bin/bash
# SPDX-License-Identifier: MIT
# Code of a JIT, and code that its program has changed: refused unless asked for; then
# it is probed, runs as written when the program patches it, rewrites it, or has
# something else in its place, and is as the program left it in the end.
. tests/e2e/lib.sh
build jit dynamic gcc
MAPS=()
trap 'cleanup; rm -f "${MAPS[@]}"' EXIT

# The target does something; what it then reads of its own code is in $T/out.
tell()
{
	: >"$T/out"
	say "$*"
	await '^done'
}

go()
{
	tell go 100
	eq "$(value wrong)" 0 "$1: wrong results"
}

begin()
{
	[ -z "${PID:-}" ] || { kill -9 "$PID" && wait "$PID" || true; } 2>>/dev/null
	start "$BIN"
	MAPS+=("/tmp/perf-$PID.map")
	RWX=$(value 'at rwx') RX=$(value 'at rx') SHARED=$(value 'at shared')
	tell look
	grep -E '^(rwx|rx|changed) ' "$T/out" >"$T/code"
}

at()
{
	printf '%#x' $(($1 + $2))
}

refused()
{
	! "$UKP" trace -p "$PID" -n 1 --for 1 "${@:2}" >"$T/trace" 2>"$T/err" || fail "$2 was planted"
	grep -q -- "$1" "$T/err" || fail "refused for another reason than '$1': $2"
}

plant()
{
	trace_start 4 --any-text "p:a $RWX" "p:b $(at "$RWX" 4) di=%di" 'p:c made+4' 'p:d changed+4'
}

# Hits of a, b, c and d.
hits()
{
	local e s=

	for e in a b c d; do
		s+=" $(grep -c " $e: " "$T/trace" || true)"
	done
	echo "${s# }"
}

taken_out()
{
	[ "$(grep -c 'taken out: .*rewritten or unmapped' "$T/err")" = "$1" ]
}

as_it_left_it()
{
	tell look
	grep -E '^(rwx|rx|changed) ' "$T/out" >"$T/now"
	diff "$1" "$T/now" >"$T/diff" || fail "$2: its code is not as it left it: $(cat "$T/diff")"
	! grep -q memfd:ukprobes "/proc/$PID/maps" || fail "$2: an agent is still there"
}

begin
refused '--any-text' "p $RWX"
refused '--any-text' "p $RX"
refused '--any-text' 'p changed+4'
refused '--any-text' 'p made'
refused 'no symbol ma' --any-text 'p ma'
refused 'is 13 bytes long' --any-text 'p made+13'
refused 'mapped shared' --any-text "p $SHARED"
refused 'its returns are not followed' --any-text 'r changed'

# As it is; the trap of the changed file is not told from another of the program's.
plant
go "as it is"
"$UKP" list -p "$PID" >"$T/list"
eq "$(grep -c 'int3: its program may rewrite it' "$T/list")" 4 "lines of list"
tell fork 50
eq "$(value wrong)" 0 "in a child"
trace_end
eq "$(hits)" "100 100 100 100" "hits as it is"
as_it_left_it "$T/code" "as it is"

# Operands behind the breakpoints are patched: the new ones count at once.
plant
go "before the patch"
tell patch 7
go "after the patch"
within 20 taken_out 3 || fail "nobody says that three were patched"
tell fork 50
eq "$(value wrong)" 0 "in a child after the patch"
trace_end
eq "$(hits)" "200 100 100 100" "hits around the patch"
sed 's/b805000000/b80c000000/' "$T/code" >"$T/patched"
as_it_left_it "$T/patched" "patched"

# All is written anew, with probes there again.
plant
go "before it is rewritten"
tell rewrite
go "rewritten"
within 20 taken_out 4 || fail "nobody says that four were rewritten"
trace_end
eq "$(hits)" "100 100 100 100" "hits before it was rewritten"
sed 's/ .*/ 8d8705000000909090909090c3/' "$T/code" >"$T/rewritten"
as_it_left_it "$T/rewritten" "rewritten"

# What comes to an address that had a probe is left alone, breakpoints of its own too.
trace_start 2 --any-text "p:a $RWX" "p:b $(at "$RWX" 12)"
go "before it is unmapped"
tell other
trace_end
eq "$(hits)" "100 100 0 0" "hits before it was unmapped"
tell check
eq "$(value wrong)" 0 "what came to its place"
go "with something else there"
sed -i 's/^rwx .*/rwx /' "$T/rewritten"
as_it_left_it "$T/rewritten" "unmapped"

# The broker is killed; the program patches, and calls, what it has left.
begin
plant
go "before the kill"
kill_both
go "orphaned"
tell patch 7
go "orphaned and patched"
cured || fail "cure: $(cat "$T/cure")"
go "cured"
as_it_left_it "$T/patched" "cured"

# Counted in place, two probes of one place, and the second time on the same sites.
for round in 1 2; do
	stat_start 3 --any-text "p $RWX" "p $(at "$RX" 4)" "p $RWX"
	go "counted"
	stat_end
	eq "$(awk '/0x/ { print $1 }' "$T/table" | sort -u)" 100 "counted, round $round: $(cat "$T/table")"
done
as_it_left_it "$T/patched" "counted"

# Other code that begins as what was probed there before, while an agent stays in.
begin
"$UKP" trace -p "$PID" --any-text "p:stays $RX" >"$T/stays" 2>&1 &
STAYS=$!
PIDS+=("$STAYS")
trace_start 2 --any-text "p:a $RWX"
go "before other code comes"
trace_end
tell tail
trace_start 2 --any-text "p:a $RWX"
go "with other code"
trace_end
eq "$(grep -c ' a: ' "$T/trace")" 100 "hits of the other code"
kill -INT "$STAYS"
wait "$STAYS" || true
sed 's/^rwx .*/rwx 558d87050000005dc390909090/' "$T/code" >"$T/other"
as_it_left_it "$T/other" "other code"

# All behind the breakpoint is other code, the breakpoint is still there: it is run into
# while the probe is in, and when it is over but the agent stays.
for when in in over; do
	begin
	"$UKP" trace -p "$PID" --any-text "p:stays $RX" >"$T/stays" 2>&1 &
	STAYS=$!
	PIDS+=("$STAYS")
	trace_start 2 --any-text "p:a $RWX"
	go "before all behind it is patched"
	tell behind
	[ $when = in ] || trace_end
	go "all behind it patched, the probe $when"
	[ $when = over ] || trace_end
	eq "$(grep -c ' a: ' "$T/trace")" 100 "hits before all behind it was patched"
	kill -INT "$STAYS"
	wait "$STAYS" || true
	as_it_left_it "$T/other" "all behind it patched, the probe $when"
done

# Its own, by which it ends itself.
begin
trace_start 1 --any-text "p:b $(at "$RWX" 4)"
say trap
{ within 20 gone "$PID"; } 2>>"$T/noise" || fail "it goes on behind a breakpoint of its own"
status=0
wait "$PID" 2>>/dev/null || status=$?
eq "$status" 133 "how it ended by a breakpoint of its own"
trace_wait
unset PID

# The same place again, in code that was patched under a probe, or is the file's again:
# sites of the code before are still known then.
begin
"$UKP" trace -p "$PID" --any-text "p:stays changed+4" >"$T/stays" 2>&1 &
STAYS=$!
PIDS+=("$STAYS")
trace_start 2 --any-text "p:b $(at "$RWX" 4)"
tell patch -1
trace_end
trace_start 4 --any-text "p:b $(at "$RWX" 4)" "p:a $RWX" "p:d changed+4"
go "where there was other code"
trace_end
eq "$(hits)" "100 100 0 100" "hits where there was other code"
kill -INT "$STAYS"
wait "$STAYS" || true
sed 's/b805000000/b804000000/' "$T/code" >"$T/patched"
as_it_left_it "$T/patched" "patched, and planted again"

# And then it is all left behind.
begin
"$UKP" trace -p "$PID" --any-text "p:stays $RX" >"$T/stays" 2>&1 &
PIDS+=("$!")
trace_start 2 --any-text "p:b $(at "$RWX" 4)"
trace_end
tell zero
trace_start 2 --any-text "p:b $(at "$RWX" 4)"
kill_both
go "orphaned in other code"
cured || fail "cure: $(cat "$T/cure")"
go "cured of other code"
sed 's/b805000000/2500000000/' "$T/code" >"$T/patched"
as_it_left_it "$T/patched" "cured of other code"

# Planted and taken out beside a thread that writes there: that may be refused.
begin
tell churn
for round in {1..8}; do
	"$UKP" trace -p "$PID" --any-text --for 0.02 "p:a $RWX" >"$T/trace" 2>"$T/err" || true
	alive "$PID" || fail "it died while it was writing, round $round: $(cat "$T/err")"
done
tell still
eq "$(value wrong)" 0 "wrong results while it was writing"
as_it_left_it "$T/code" "written all the time"
