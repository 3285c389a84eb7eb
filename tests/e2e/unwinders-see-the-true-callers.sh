#!/bin/bash
# SPDX-License-Identifier: MIT
# C++ exceptions through probed functions, backtrace() and the end of a thread
# inside some: the target's results are those without probes, whatever catches the
# returns.  What was left that way is a counted miss, and nothing else is by exit
# sites; slots give up all that is on its way when somebody unwinds.
. tests/e2e/lib.sh

# same WORD...: as in the round without probes
same()
{
	for w in "$@"; do
		eq "$(value "$w")" "$(sed -n "s/^$w //p" "$T/without")" "$NAME: $w"
	done
}

round()
{
	: >"$T/out"
	say go
	await '^done'
}

# missed WHY: of the last trace
missed()
{
	sed -n "s/.*[( ]$1 \([0-9]*\).*/\1/p" <<<"$WHY" | grep . || echo 0
}

# trace_start, and with jumps where functions are to be called in place
trace_by()
{
	trace_start "$2" --ret="$1" "${@:3}"
	[ "$1" != call ] || within 20 called || fail "$NAME: $("$UKP" list -p "$PID")"
}

called()
{
	! "$UKP" list -p "$PID" | grep -q 'ret=slot'
}

cpp()
{
	start "$BIN"
	round
	cp "$T/out" "$T/without"
	snapshot "$PID" loose >"$T/before"
	trace_by "$1" 5 'r:t thrower $retval:s32' 'r:m middle $retval:s32' 'r:o outer $retval:s32' \
		'r:b tracer $retval:s32' 'p:e middle'
	round
	trace_end
	same caught destroyed normal frames
	eq "$HITS" $((400 * 4 + 11)) "$NAME: hits"
	# thrower and middle are left by half of the calls, outer by a quarter
	case $1 in
	slot | call) [ "$(missed unwound)" -ge 500 ] || fail "$NAME: $WHY" ;;
	exit) eq "$(($(missed unwound) + $(missed unreturned))) $MISSES" "500 500" "$NAME: $WHY" ;;
	esac
	eq "$(grep -c ': t: ' "$T/trace")" 200 "$NAME: returns"
	round
	same caught destroyed normal frames
	assert_untouched "$PID" "$T/before" loose
}

for flags in "" -static; do
	NAME="C++ $flags"
	# shellcheck disable=SC2086 # none or one
	build unwind "cc$flags" g++ $flags || { without "$NAME" "it does not build here"; continue; }
	for how in slot exit call auto; do
		NAME="C++ $flags by $how"
		cpp $how
	done
done

c()
{
	start "$BIN"
	round
	cp "$T/out" "$T/without"
	start "$BIN" # anew: its unwinder isn't loaded when we come
	trace_by "$1" 3 'r:b tracer $retval:s32' 'r:l leaves' 'r:w waits'
	round
	trace_end
	same frames cleaned left
	eq "$HITS" $((11 + 6 + 6)) "$NAME: hits"
	verified "$PID" || fail "$NAME: $(cat "$T/verify")"
}

for flags in "" -static; do
	NAME="C $flags"
	# shellcheck disable=SC2086
	build backtrace "c$flags" gcc $flags || { without "$NAME" "it does not build here"; continue; }
	for how in slot call auto; do
		NAME="C $flags by $how"
		c $how
	done
done
