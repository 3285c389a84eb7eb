#!/bin/bash
# SPDX-License-Identifier: MIT
# Calls that never come back (exceptions, longjmp, the end of their thread, a
# coroutine's stack that is gone), again and again, also in many threads, by each
# mechanism: hits = returns + those that are said to be missing, and what is resident
# stays as it is.  STORMS, THROWS, CANCELS and CROWDS say how often, THROWS and CANCELS at least.
. tests/e2e/lib.sh

STORMS=${STORMS:-10000}
THROWS=${THROWS:-1000}
CANCELS=${CANCELS:-100}
CROWDS=${CROWDS:-10}

# go CASE N
go()
{
	: >"$T/out"
	say "$1 $2"
	await "^done $1\$" "${LIMIT:-60}"
	CALLS=$(value calls)
	RESULT=$(grep '^result' "$T/out")
	RESIDENT=$(value resident)
}

jumped()
{
	[ "$("$UKP" list -p "$PID" 2>>/dev/null | grep -c OPTIMIZED)" -ge 10 ] || ! alive "$TRACE"
}

# again CASE N: what it takes after N is what it took after a tenth of that
again()
{
	local warm

	go "$1" $(($2 / 10))
	warm=$RESIDENT
	MADE=$((MADE + CALLS))
	go "$1" "$2"
	MADE=$((MADE + CALLS))
	[ $((RESIDENT - warm)) -le 512 ] || fail "$how $1: $RESIDENT KiB are resident, $warm before"
	[ -z "${VERBOSE:-}" ] || echo "$SECONDS $how $1 $2: $CALLS calls, resident $RESIDENT KiB, $warm before"
}

# A place's misses and returns: all that was called.
totals()
{
	awk '$3 == "without" || $3 == "calls" || /calls without a return/ { misses = $1; next }
		/ in [0-9]* of [0-9]* places/ { hits = $1 } END { print hits + misses }' "$T/table"
}

export UKPROBES_OPTIMIZATION
build ways cc g++
for how in '0 slot' '1 call' '1 exit'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	start "$BIN"
	go storms 100
	want=$RESULT
	go threads 2
	snapshot "$PID" loose >"$T/before"
	MADE=0
	stat_start 15 "--ret=$RET" "r:w ${BIN##*/}:w_*"
	[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 30 jumped || fail "$how: no jumps come"
	again storms "$STORMS"
	again exceptions "$THROWS"
	again threads $((CANCELS * 2))
	again abandons "$CANCELS"
	# By 48 threads in turns, each of which finds its own only.
	again crowds "$CROWDS"
	go storms 100
	eq "$RESULT" "$want" "$how: results"
	MADE=$((MADE + CALLS))
	stat_end
	eq "$(totals)" "$MADE" "$how: returns and misses against calls"
	assert_untouched "$PID" "$T/before" loose
done

# Who is left by longjmp holds none of a fixed number for good.
for how in '0 slot' '1 call'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	start "$BIN"
	trace_start 2 "--ret=$RET" "r4:w ${BIN##*/}:w_over" "r4:w ${BIN##*/}:w_leaf"
	go storms 1000
	go jumps 1000
	trace_end
	[ "$(grep -c 'w_over' "$T/trace")" -gt 600 ] || fail "$how: $(grep -c w_over "$T/trace") returns with r4"
done
