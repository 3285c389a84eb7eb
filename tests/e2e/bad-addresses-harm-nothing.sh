#!/bin/bash
# SPDX-License-Identifier: MIT
# Pointers that lead nowhere print (fault); a program that handles its own faults
# sees them as without us: addresses, pcs, the number of them.
. tests/e2e/lib.sh
build segv dynamic gcc
start "$BIN"
say go
await '^done'
eq "$(value wrong)" 0 "without probes"
snapshot "$PID" loose >"$T/before"
# The faulting instruction itself is probed, and both around it.
trace_start 6 'p:s takes +0($arg1):string' 'p:n takes +0(+8($arg1)):u64 @0x10:u8' \
	'r:x takes $retval:s32' 'p:t touch $arg2:s32' 'p:st touch+2 %ax:s32' 'r:rt touch $retval:s32'
: >"$T/out"
say go
await '^done'
trace_end
eq "$(value wrong)" 0 "the target's own faults"
eq "$(value faults)" 400 "the target's faults"
eq "$(grep -c ': s: .*arg1=(fault)' "$T/trace")" 800 "string faults"
eq "$(grep -c ': s: .*arg1="good"' "$T/trace")" 200 "strings"
eq "$(grep -c ': n: .*arg2=(fault)' "$T/trace")" 1000 "faults of a fixed address"
eq "$(grep -c ': x: .*arg1=5$' "$T/trace")" 1000 "returns"
eq "$(grep -c ': rt: ' "$T/trace")" 200 "returns of what faults inside"
eq "$HITS" $((1000 * 3 + 200 * 3)) "hits"
eq "$RECORDS" "$HITS" "records"
: >"$T/out"
say go
await '^done'
eq "$(value wrong)" 0 "after detaching"
eq "$(value faults)" 600 "the target's faults after detaching"
assert_untouched "$PID" "$T/before" loose

command -v redis-server >>/dev/null || exit 0
# redis has a SIGSEGV handler that writes a report and ends.
redis-server --port 0 --unixsocket "$T/s" --dir "$T" --save '' >"$T/redis" 2>&1 &
PID=$!
PIDS+=("$PID")
ponged()
{
	[ "$(redis-cli -s "$T/s" ping 2>&1)" = PONG ]
}
within 20 ponged || fail "redis doesn't start"
snapshot "$PID" loose >"$T/before"
trace_start 2 'p:bad processCommand +0(+0(%sp)):string @0x8:u64 +0(\1):string' \
	'r:x processCommand +0($retval):string'
for i in 1 2 3 4 5; do
	ponged || fail "redis doesn't answer"
done
trace_end
eq "$(grep -c ': bad: .*arg2=(fault) arg3=(fault)' "$T/trace")" $((HITS / 2)) "redis: faults"
[ "$HITS" -ge 10 ] || fail "redis: $HITS hits"
ponged || fail "redis doesn't answer"
! grep -qi crash "$T/redis" || fail "redis crashed"
assert_untouched "$PID" "$T/before" loose
