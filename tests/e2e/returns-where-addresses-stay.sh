#!/bin/bash
# SPDX-License-Identifier: MIT
# Functions that look at their own return address: exit sites catch their returns.
. tests/e2e/lib.sh
build returns stays gcc -O2

# asked COMMAND ANSWER
asked()
{
	: >"$T/out"
	say "$1"
	await "^${2:-$1} "
}

by_exit()
{
	[ "$("$UKP" list -p "$PID" | grep -c ' ret=exit (')" = "$1" ]
}

start "$BIN"
asked objects
objects=$(value objects)
snapshot "$PID" >"$T/before"
for form in int3 jump; do
	[ $form = jump ] || export UKPROBES_OPTIMIZATION=0
	trace_start 2 'r:d dl_iterate_phdr $retval:s32' 'p dl_iterate_phdr'
	unset UKPROBES_OPTIMIZATION
	by_exit 1 || fail "dl_iterate_phdr: $("$UKP" list -p "$PID")"
	asked objects
	trace_end
	eq "$(value objects)" "$objects" "dl_iterate_phdr, $form"
	eq "$HITS $RECORDS" "20 20" "dl_iterate_phdr, $form: hits"
	eq "$(grep -c "arg1=1\$" "$T/trace")" 10 "dl_iterate_phdr, $form: what it returns"
	assert_untouched "$PID" "$T/before"
done

asked address
eq "$(value address)" 1 "without a probe"
for how in exit slot; do
	trace_start 1 --ret=$how 'r:o own $retval'
	asked address
	trace_end
	eq "$HITS $RECORDS" "1 1" "own, $how"
	# That it sees another with a slot shows that it looks.
	eq "$(value address)" "$([ $how = exit ] && echo 1 || echo 0)" "own, $how: its return address"
	assert_untouched "$PID" "$T/before"
done
