#!/bin/bash
# SPDX-License-Identifier: MIT
# A program of Boost.Context's fibers under return probes on all its functions that
# switch between them, and on jump_fcontext() itself, whose calls end on another stack
# than the one that the CPU is on: by turns, from thread to thread, with exceptions,
# ended by their owner and left for good.  Results are those without probes, and
# hits = calls, by each mechanism.
. tests/e2e/lib.sh

CASES='turns moves throws passes-on thrown-into ended left'
TIMES=24
# Those of them whose calls all return.
RETURN='turns moves'

# pass FILE [CASES]: their results to it, the calls and switches of that to ALL and SWITCHES
pass()
{
	local cases=${2:-$CASES}

	: >"$T/out"
	# shellcheck disable=SC2086 # a line each
	printf "%s $TIMES\n" $cases >&9
	await "^done ${cases##* }\$" 60
	grep '^result' "$T/out" >"$1"
	ALL=$(total calls)
	SWITCHES=$(total switches)
}

total()
{
	awk -v what="$1" '$1 == what { n += $2 } END { print n }' "$T/out"
}

jumped()
{
	[ "$("$UKP" list -p "$PID" | grep -c OPTIMIZED)" -ge 6 ] || ! alive "$TRACE"
}

# traced CASES: by the mechanisms of now
traced()
{
	pass "$T/without" "$1"
	trace_start 7 "--ret=$RET" "r:b ${BIN##*/}:b_* \$retval"
	[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 30 jumped || fail "$how: no jumps come"
	pass "$T/with" "$1"
	trace_end
	diff "$T/without" "$T/with" || fail "$how: other results"
	eq "$HITS" "$ALL" "$how: hits"
}

# Who switches away comes back, as another thread perhaps.
switched()
{
	trace_start 1 "--ret=$RET" "r:j libboost_context:jump_fcontext \$retval"
	pass "$T/with" "$RETURN"
	trace_end
	eq "$HITS" "$SWITCHES" "$how: hits of jump_fcontext"
	eq "$MISSES" 0 "$how: $WHY"
}

export UKPROBES_OPTIMIZATION
build fibers cc g++ -lboost_context 2>>/dev/null || skip "libboost-context-dev is not there"
for how in '0 slot' '1 auto' '1 exit' '1 call'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	start "$BIN"
	pass "$T/first"
	snapshot "$PID" loose >"$T/before"
	traced "$CASES"
	traced "$RETURN"
	eq "$MISSES" 0 "$how: $WHY"
	[ "$RET" = exit ] || switched
	pass "$T/with"
	diff "$T/first" "$T/with" || fail "$how: other results afterwards"
	assert_untouched "$PID" "$T/before" loose
done
