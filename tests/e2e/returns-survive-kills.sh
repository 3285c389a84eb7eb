#!/bin/bash
# SPDX-License-Identifier: MIT
# The broker is killed while exit sites are in, as breakpoints and as jumps, and
# calls are under way: they end as ever, and a cure leaves the text as it was.
. tests/e2e/lib.sh
build returns kills gcc -O2

by_exit()
{
	[ "$("$UKP" list -p "$PID" | grep -c " ret=exit (.*) $1")" = 4 ]
}

for form in int3 jump; do
	start "$BIN"
	: >"$T/out"
	say all
	await '^sum'
	sum=$(value sum)
	snapshot "$PID" loose >"$T/before"
	[ $form = jump ] || export UKPROBES_OPTIMIZATION=0
	trace_start 4 --ret=exit 'r plain $retval' 'r recurse' 'r hold' 'r leaves'
	unset UKPROBES_OPTIMIZATION
	within 20 by_exit $form || fail "$form: $("$UKP" list -p "$PID")"
	: >"$T/out"
	say hold
	await '^holding'
	kill_both
	say 41
	await '^held 42'
	say all
	await '^sum'
	eq "$(value sum)" "$sum" "$form: after the broker's end"
	! verified "$PID" || fail "$form: verify is clean with an agent in"
	within 30 cured || fail "$form: cure: $(cat "$T/cure")"
	assert_untouched "$PID" "$T/before" loose
	: >"$T/out"
	say hold
	await '^holding'
	say 42
	await '^held 43'
	say all
	await '^sum'
	eq "$(value sum)" "$sum" "$form: after the cure"
done
