#!/bin/bash
# SPDX-License-Identifier: MIT
# Root and the owner of a process have a broker each, and can't see each other's: who
# comes second is told so, and takes nothing out.  When a broker has been killed, list and
# doctor say what is left, and whoever comes next takes it out.
. tests/e2e/lib.sh
build masked dynamic gcc
user
NOBODY=("${AS[@]}")
cp "$BIN" "$T/masked"
BUSY="process [0-9]* is being probed by user"

# refused REGEX COMMAND ARG...: by each side for itself
refused()
{
	local why=$1

	shift
	! timeout 30 "${AS[@]}" "$UKP" "$1" -p "$PID" "${@:2}" >"$T/said" 2>&1 || fail "$1: status 0: $(cat "$T/said")"
	grep -Eq -- "^ukprobe: $why" "$T/said" || fail "$1 said: $(cat "$T/said")"
}

start "$T/masked"
snapshot "$PID" >"$T/before"
for first in nobody root; do
	AS=()
	[ "$first" = root ] || AS=("${NOBODY[@]}")
	trace_start 1 'p work'
	if [ "$first" = root ]; then AS=("${NOBODY[@]}"); else AS=(); fi
	refused "$BUSY $([ "$first" = root ] && echo 0 || id -u nobody) \(broker" stat --for 1 'p work'
	refused "$BUSY" list
	refused "$BUSY" cure
	"${AS[@]}" "$UKP" doctor -p "$PID" >"$T/doctor" || fail "doctor: $(cat "$T/doctor")"
	grep -q '^ok *agent *it is being probed' "$T/doctor" || fail "doctor: $(cat "$T/doctor")"
	say 100
	await '^done'
	: >"$T/out"
	trace_end
	eq "$HITS" 100 "$first first: hits"
	AS=("${NOBODY[@]}")
	assert_untouched "$PID" "$T/before"
done

AS=()
trace_start 1 'p work'
kill_both
refused 'process [0-9]* has an agent that nobody serves: .* .ukprobe cure' list
"$UKP" doctor -p "$PID" >"$T/doctor" || fail "doctor: $(cat "$T/doctor")"
grep -q '^warn *agent .*cure' "$T/doctor" || fail "doctor: $(cat "$T/doctor")"
# The owner, too, may take it out.
AS=("${NOBODY[@]}")
trace_start 1 'p work'
say 100
await '^done'
trace_end
eq "$HITS" 100 "after a broker of another user was killed: hits"
assert_untouched "$PID" "$T/before"
