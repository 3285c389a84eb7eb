#!/bin/bash
# SPDX-License-Identifier: MIT
# What an agent takes beside rings and copied text: less than 1 MiB, until returns are
# asked for, whose stubs are 2 MiB.
. tests/e2e/lib.sh
build steps dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"

# KiB of the file that has all that an attach brings
taken()
{
	local b f

	b=$(pgrep -f "ukprobe broker $PID ")
	for f in "/proc/$b"/fd/*; do
		[[ $(readlink "$f") != /memfd:ukprobes-ctl* ]] || stat -L -c '%b' "$f"
	done | awk '{ n += $1 / 2 } END { print n }'
}

calls()
{
	: >"$T/out"
	say go 3 5
	await '^sum 30'
}

trace_start 1 'p steps'
calls
entry=$(taken)
[ "$entry" -gt 0 ] && [ "$entry" -lt 1024 ] || fail "an entry probe takes $entry KiB"
trace_end
eq "$HITS" 5 "hits"

for how in slot auto; do
	trace_start 1 --ret=$how 'r steps $retval'
	calls
	both=$(taken)
	[ "$both" -lt 3072 ] || fail "a return probe takes $both KiB"
	trace_end
	eq "$HITS $RECORDS" "5 5" "$how: returns"
done
# The same when they come second.
trace_start 1 'p steps'
"$UKP" trace -p "$PID" -n 5 -o "$T/second" --ret=slot 'r steps $retval' 2>"$T/second.err" &
second=$!
within 30 eval '[ "$("$UKP" list -p "$PID" | grep -c steps)" = 2 ]'
calls
wait $second || fail "the second: $(cat "$T/second.err")"
eq "$(grep -c 'steps.*=0x6' "$T/second")" 5 "the second's returns"
trace_end
assert_untouched "$PID" "$T/before"
echo "entry $entry KiB, with stubs $both KiB"
