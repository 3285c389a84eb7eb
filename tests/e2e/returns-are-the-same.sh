#!/bin/bash
# SPDX-License-Identifier: MIT
# Whatever catches returns, the same returns are caught, with the same values:
# of recursion, of calls that longjmp() leaves, in threads and in signal
# handlers.  Nothing that the program sees changes.
. tests/e2e/lib.sh

EVENTS=('r:plain plain arg1=$arg1:s64 $retval:s64' 'r:recurse recurse arg1=$arg1:s64 $retval:s64'
	'r:leaves leaves arg1=$arg1:s64 $retval:s64' 'r:jumps jumps $retval:s64'
	'r:handled handled arg1=$arg1:s64 $retval:s64' 'r:sleeps sleeps $retval:s64 ns=$duration')

round()
{
	: >"$T/out"
	say all
	await '^sum'
}

# How often each event had each value; the time that sleeps() took is checked and left out.
values()
{
	awk '{ sub(/.*: /, "", $5); if ($5 == "sleeps:") { sub("ns=", "", $NF); print (($NF + 0 >= 3000000) ? "slept" : "time " $NF); $NF = "" }
		$1 = $2 = $3 = $4 = ""; print }' "$T/trace" | sed 's/(.*<- /(/' | sort | uniq -c
}

mechanisms()
{
	"$UKP" list -p "$PID" | sed -n 's/.* ret=\([a-z]*\) .*/\1/p' | sort -u | tr '\n' ' '
}

settled()
{
	! "$UKP" list -p "$PID" | grep -Eq 'on its way|being looked for|wait for'
}

for flags in -O1 -O2 "-O0 -fno-omit-frame-pointer"; do
	# shellcheck disable=SC2086 # several
	build returns "same${flags// /}" gcc $flags
	start "$BIN"
	round
	sum=$(value sum)
	snapshot "$PID" loose >"$T/before"
	for how in slot exit call auto jumped; do
		NAME="$flags, $how"
		trace_start 6 --ret="${how/jumped/auto}" "${EVENTS[@]}"
		[ $how != jumped ] && [ $how != call ] || within 20 settled || fail "$NAME: $("$UKP" list -p "$PID")"
		[ $how = auto ] || [ $how = jumped ] || eq "$(mechanisms)" "$how " "$NAME: mechanisms"
		[ $how != jumped ] || grep -q exit <<<"$(mechanisms)" || fail "$NAME: $("$UKP" list -p "$PID")"
		round
		trace_end
		eq "$(value sum)" "$sum" "$NAME: what the program has computed"
		values >"$T/values.$how"
		# four threads with 40 each, and 20 by leaves()
		eq "$(grep -c ': plain: ' "$T/trace")" 180 "$NAME: returns of plain"
		eq "$(grep -c ': leaves: ' "$T/trace") $MISSES" "10 10" "$NAME: calls that come back and that don't"
		eq "$(grep -c ': jumps: ' "$T/trace")" 20 "$NAME: returns of jumps"
		eq "$(grep -c ': handled: ' "$T/trace")" 10 "$NAME: returns of handled"
		! grep -q time "$T/values.$how" || fail "$NAME: $(cat "$T/values.$how")"
		diff "$T/values.slot" "$T/values.$how" >"$T/diff" || fail "$NAME: $(cat "$T/diff")"
		assert_untouched "$PID" "$T/before" loose
	done
	round
	eq "$(value sum)" "$sum" "$flags: afterwards"
	exec 9>&-
	kill "$PID"
done
