#!/bin/bash
# SPDX-License-Identifier: MIT
# In a static program libc has no module of its own, and in a stripped one no names; musl's
# dynamic one goes by two names.  All their functions, returns and instructions are probed
# at once, by breakpoints and jumps: what runs with signals blocked goes on.
. tests/e2e/lib.sh

all()
{
	local m=${BIN##*/}

	start "$BIN"
	say 5
	await '^done'
	snapshot "$PID" loose >"$T/before"
	for def in "f $m:*" "r $m:*" "p $m:*+*" ${1:+"f $1:*"}; do
		: >"$T/out"
		"$UKP" stat -p "$PID" -o "$T/table" "$def" 2>"$T/err" &
		TRACE=$!
		PIDS+=("$TRACE")
		within 30 planted "$PID" 1 || fail "$m, $def: nothing was planted"
		if ! alive "$TRACE"; then
			# Without a name nothing is said of a return address.
			grep -q 'none of the [0-9]* places can be probed' "$T/err" || fail "$m, $def: $(cat "$T/err")"
			continue
		fi
		say 20
		await '^done' 60
		eq "$(value bad)" 0 "$m, $def: bad"
		stat_end
		[ "$(awk '/ in [0-9]* of [0-9]* places/ { print $1 }' "$T/table")" -gt 0 ] || fail "$m, $def: nothing is hit"
		assert_untouched "$PID" "$T/before" loose
	done
	kill -9 "$PID"
}

for how in 'static gcc -static' 'pie gcc -static-pie' 'stripped gcc -static -s' \
	'musl musl-gcc' 'mstatic musl-gcc -static'; do
	read -r tag cc flags <<<"$how"
	# shellcheck disable=SC2086 # none or more
	build sidebyside "$tag" $cc $flags || { without "$how" "it does not build here"; continue; }
	all "$([ "$tag" != musl ] || echo libc.so)"
done
