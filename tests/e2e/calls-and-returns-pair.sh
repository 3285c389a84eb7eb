#!/bin/bash
# SPDX-License-Identifier: MIT
# Where the entry has the jump form, a function whose returns are probed is called
# in place: under a shadow stack that the target keeps for itself, all returns go
# where the last call came from, as without probes.  From breakpoints two a call
# don't.  A call that is inside when its probe leaves comes back to its caller.
. tests/e2e/lib.sh

N=3
FOLLOWED=7 # calls of a round: tail, deep five times, pops

# in the list: so many probes that call
called()
{
	[ "$("$UKP" list -p "$PID" 2>>/dev/null | grep -c 'OPTIMIZED.* ret=call (as asked for) jump')" -ge "$1" ] ||
		! alive "$TRACE"
}

slots()
{
	[ "$("$UKP" list -p "$PID" 2>>/dev/null | grep -c 'OPTIMIZED.* ret=slot (as asked for) jump')" -ge "$1" ] ||
		! alive "$TRACE"
}

# go WRONG WHAT
go()
{
	: >"$T/out"
	say "go $N"
	await '^done'
	eq "$(value bad)" 0 "$2: results"
	eq "$(value wrong)" "$1" "$2: returns that went elsewhere"
}

build pairs plain gcc
start "$BIN"
snapshot "$PID" >"$T/before"
go 0 "without probes"
calls=$(value calls)

trace_start 4 --ret=call 'r tail $retval' 'r deep $retval' 'r pops $retval' 'r waits $retval'
within 30 called 4 || fail "no jumps: $("$UKP" list -p "$PID")"
go 0 "in the jump form"
# The function's own, the one of the stub, and the engine's.
[ "$(value calls)" -gt $((calls + N * FOLLOWED)) ] || fail "nothing was called in place: $(value calls) calls, $calls without probes"
: >"$T/out"
say inside
await '^inside'
trace_end
eq "$STATUS" 0 "status"
eq "$HITS" $((N * FOLLOWED + 1)) "hits"
eq "$RECORDS" $((N * FOLLOWED)) "records"
eq "$(grep -c '<- tail) .*=0x7$' "$T/trace")" $N "what the tail of tail gave"
eq "$(grep -c '<- pops) .*=0x2a$' "$T/trace")" $N "what pops gave"
eq "$(grep -c '<- deep) .*=0xf$' "$T/trace")" $N "what deep gave"
assert_untouched "$PID" "$T/before"
say on
await '^done'
eq "$(value back)" 42 "who was inside"
go 0 "after the detach"

# A wish for slots is followed under jumps, too.
trace_start 3 --ret=slot 'r tail $retval' 'r deep $retval' 'r pops $retval'
within 30 slots 3 || fail "no jumps: $("$UKP" list -p "$PID")"
go $((2 * N * FOLLOWED)) "with slots"
trace_end
eq "$HITS" $((N * FOLLOWED)) "hits with slots"
assert_untouched "$PID" "$T/before"

UKPROBES_OPTIMIZATION=0 trace_start 3 'r tail $retval' 'r deep $retval' 'r pops $retval'
go $((2 * N * FOLLOWED)) "with breakpoints"
trace_end
eq "$HITS" $((N * FOLLOWED)) "hits with breakpoints"
eq "$RECORDS" "$HITS" "records with breakpoints"
assert_untouched "$PID" "$T/before"
