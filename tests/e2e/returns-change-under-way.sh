#!/bin/bash
# SPDX-License-Identifier: MIT
# A return probe goes over from a slot to exit sites and back, as jumps come and
# go: calls that are under way then end as they began, and none is lost.
. tests/e2e/lib.sh
build returns changes gcc -O2

by()
{
	"$UKP" list -p "$PID" | grep -q " r  $1+0x0 .* ret=$2 ("
}

# Somebody else comes and goes: all jumps go back, and come again.
another()
{
	"$UKP" trace -p "$PID" -o "$T/other" -n 1 --for "${1:-0.05}" 'p sleeps' >"$T/other.err" 2>&1 ||
		fail "another trace: $(cat "$T/other.err")"
}

# --- a call that began by its frame -------------------------------------------------
start "$BIN"
snapshot "$PID" >"$T/before"
trace_start 1 'r:h hold $retval:s64 $arg1:s64'
within 20 by hold exit || fail "no exit sites: $("$UKP" list -p "$PID")"
say hold
await '^holding'
another
within 20 by hold exit || fail "no exit sites any more"
another
say 41
await '^held 42'
say hold
await '^holding'
another 0.2 &
OTHER=$!
PIDS+=("$OTHER")
say 42
await '^held 43'
wait "$OTHER"
trace_end
eq "$HITS $RECORDS" "2 2" "calls that began by their frames"
eq "$(sed 's/.*<- //' "$T/trace" | tr '\n' ';')" "hold) arg1=42 arg2=1;hold) arg1=43 arg2=1;" "their values"
assert_untouched "$PID" "$T/before"

# --- one that began by a slot --------------------------------------------------------
trace_start 1 'r:h hold $retval:s64'
: >"$T/out"
say hold
await '^holding'
within 20 by hold exit || fail "no exit sites"
say 50
await '^held 51'
trace_end
eq "$HITS $RECORDS" "1 1" "a call that began by a slot"
assert_untouched "$PID" "$T/before"

# --- one that is under way when the probe goes ----------------------------------------
for how in auto exit call slot; do
	: >"$T/out"
	trace_start 1 --ret=$how 'r:h hold $retval:s64'
	within 20 by hold "${how/auto/exit}" || fail "not $how"
	say hold
	await '^holding'
	trace_end
	eq "$HITS $RECORDS$WHY" "1 0 (unreturned 1)" "$how: a call that outlasts its probe"
	assert_untouched "$PID" "$T/before"
	# And one that began without a probe comes back through it.
	trace_start 2 --ret=$how 'r:h hold $retval:s64' 'p:s hold'
	within 20 by hold "${how/auto/exit}" || fail "not $how"
	say 60
	await '^held 61'
	trace_end
	eq "$HITS" 0 "$how: a call that is older than its probe"
	assert_untouched "$PID" "$T/before"
done

# --- a probe of somebody else at an exit, and two return probes of one function --------
start "$BIN"
exit_of=$(objdump -d --no-show-raw-insn "$BIN" | awk '/^[0-9a-f]+ <plain>:/ { s = $1; f = 1 } /^$/ { f = 0 }
	f && $2 ~ /^ret/ { sub(":", "", $1); print s, $1 }' | head -1 | { read -r s e; printf '%d' $((0x$e - 0x$s)); })
trace_start 3 'r:a plain $retval:s64' "p:at plain+$exit_of %ax:s64" 'r:b plain $arg1:s64'
within 20 by plain exit || fail "no exit sites: $("$UKP" list -p "$PID")"
: >"$T/out"
say all
await '^sum'
trace_end
eq "$(grep -c ': a: ' "$T/trace") $(grep -c ': b: ' "$T/trace")" "180 180" "two return probes"
[ "$(grep -c ': at: ' "$T/trace")" -ge 50 ] || fail "a probe at an exit: $(grep -c ': at: ' "$T/trace")"
eq "$MISSES" 0 "misses"
verified "$PID" || fail "verify: $(cat "$T/verify")"

# --- under fire -------------------------------------------------------------------------
build counter dynamic gcc
start "$BIN" 3 100000 recurse=5
snapshot "$PID" loose >"$T/before"
stat_start 4 'r work' 'r recurse' 'p work' 'p recurse'
say go
for i in 1 2 3 4 5 6; do
	"$UKP" stat -p "$PID" --for 0.1 'r work' 'r recurse' 'p tick' >"$T/other" 2>&1 || fail "$i: $(cat "$T/other")"
done
await '^done' 60
stat_end
eq "$(value wrong)" 0 "wrong results in the target"
for f in work recurse; do
	for line in "$f%return" "$f"; do
		n=$(awk -v p="$line" '{ sub(/\+0x0\/0x[0-9a-f]*$/, "", $2) } $2 == p { print $1 }' "$T/table")
		eq "$n" "$(value $f)" "$line while others come and go"
	done
done
! grep -q 'without a return' "$T/table" || fail "lost: $(cat "$T/table")"
assert_untouched "$PID" "$T/before" loose
