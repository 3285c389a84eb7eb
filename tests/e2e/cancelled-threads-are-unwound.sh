#!/bin/bash
# SPDX-License-Identifier: MIT
# pthread_cancel() of threads that wait in read(), poll() and pause(), all of
# whose instructions have a probe that can have one: each destructor runs.  The
# waiting system call itself is refused: unwinding would begin in its copy.
. tests/e2e/lib.sh

round()
{
	: >"$T/out"
	say go
	await '^done'
	for how in 0 1 2; do
		grep -q "^$how cancelled 5\$" "$T/out" || fail "$1: $(cat "$T/out")"
	done
}

build cancel cxx g++
start "$BIN"
round 'without probes'
snapshot "$PID" loose >"$T/before"
trace_start 1 'p:reads read+*' 'p:polls poll+*' 'p:pauses pause+*'
for f in read poll pause; do
	"$UKP" list -p "$PID" >"$T/list"
	[ "$(grep -c "  $f+" "$T/list")" -ge 3 ] || fail "$f: hardly a probe: $(cat "$T/list")"
done
round 'with probes'
trace_end
[ "$HITS" -ge 9 ] || fail "only $HITS hits"
round 'afterwards'
assert_untouched "$PID" "$T/before" loose
