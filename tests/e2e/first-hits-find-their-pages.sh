#!/bin/bash
# SPDX-License-Identifier: MIT
# What a first hit reads and writes is mapped before it: its page faults took
# longer than all the rest.  (One is allowed, for the kernel may take away a page
# at any time; without the care there were five at an entry and eight at a return.)
. tests/e2e/lib.sh
build firsthit dynamic gcc

jumped()
{
	"$UKP" list -p "$PID" | grep -q ' jump$'
}

for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	for def in 'p work $arg1' 'r work $retval'; do
		start "$BIN"
		trace_start 1 "$def"
		[ $form = 0 ] || within 20 jumped || fail "no jump"
		say go
		await '^faults'
		trace_end
		eq "$RECORDS" 1 "$def: records"
		[ "$(value faults)" -le 1 ] || fail "$def: $(value faults) page faults at the first hit, form $form"
		verified "$PID" || fail "verify: $(cat "$T/verify")"
	done
done
