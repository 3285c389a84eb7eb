#!/bin/bash
# SPDX-License-Identifier: MIT
# trace -o FILE with default buffers: events at 1 M/s from two threads, none
# lost; unthrottled, what is lost is counted to the unit.  Eight definitions on
# one function: a trap costs some 2 us, a record much less.
. tests/e2e/lib.sh
N=${LONG:+10000000}
N=${N:-1000000}
build pacer dynamic gcc
DEFS=()
for i in 1 2 3 4 5 6 7 8; do
	DEFS+=("p:e$i work \$arg1:u64")
done

# A machine that is busy with other things can't keep the pace, nor the reader: it
# has some tries.  What it lost is counted in each of them.
start "$BIN" 2 125000
say "go 2" # libc sets itself up for threads
await "^done"
snapshot "$PID" loose >"$T/before"
for try in 1 2 3 4 5; do
	: >"$T/out"
	trace_start 8 "${DEFS[@]}"
	say "go $((N / 8))"
	await '^done' 600
	trace_end
	ms=$(value ms)
	eq "$HITS" "$N" hits
	eq "$(wc -l <"$T/trace")" "$RECORDS" lines
	[ "$MISSES" = 0 ] || eq "$WHY" " (ring full $MISSES)" reasons
	assert_untouched "$PID" "$T/before" loose
	echo "$N events in $ms ms: $((N / ms)) a ms,$WHY lost $MISSES"
	[ "$MISSES" != 0 ] || break
done
# Lost each time: that is our fault where nobody else wants the CPUs.
if [ "$MISSES" != 0 ]; then
	read -r load _ </proc/loadavg
	[ "${load%.*}" -le "$(nproc)" ] && [ "$(nproc)" -ge 2 ] && fail "lost $MISSES, try $try, load $load"
	without "that nothing is lost" "$(nproc) CPUs, load $load"
fi

start "$BIN" 2 0
trace_start 8 "${DEFS[@]}"
say "go $((N / 8))"
await '^done' 600
trace_end
ms=$(value ms)
eq "$HITS" "$N" "unthrottled: hits"
eq "$(wc -l <"$T/trace")" "$RECORDS" "unthrottled: lines"
[ "$MISSES" = 0 ] || eq "$WHY" " (ring full $MISSES)" "unthrottled: reasons"
for i in 1 8; do
	n=$(grep -c ": e$i: (" "$T/trace")
	[ "$n" -le $((N / 8)) ] || fail "more lines than calls"
done
echo "unthrottled: $N events in $ms ms: $((N / ms)) a ms,$WHY lost $MISSES"
