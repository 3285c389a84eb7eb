#!/bin/bash
# SPDX-License-Identifier: MIT
# kill -9 of the target in mid-burst, of the broker in mid-trace, of the client.
. tests/e2e/lib.sh
N=${LONG:+200}
N=${N:-8}
build burst dynamic gcc
DEFS=('p:e work $arg1:u64' 'r:x work $retval:u64' 'r:d deep $retval $duration')

ponged()
{
	grep -q "^pong $1\$" "$T/out"
}

serves()
{
	say "$1"
	within 20 ponged "$1" || fail "the target doesn't serve after $2"
	eq "$(value wrong)" 0 "wrong results after $2"
}

running()
{
	[ -s "$T/trace" ]
}

for i in $(seq "$N"); do
	start "$BIN" 2
	rm -f "$T/trace"
	trace_start 3 "${DEFS[@]}"
	within 10 running || fail "no records"
	kill -9 "$PID"
	wait "$PID" 2>>/dev/null || true
	trace_wait 15
	# Not one that was counted is amiss but those that were being written; each
	# thread may have finished one that it did not come to count.
	records=$(wc -l <"$T/trace")
	[ $((RECORDS - records)) -ge -2 ] && [ $((RECORDS - records)) -le 2 ] ||
		fail "kill of the target: $RECORDS records, $records lines$WHY"
	[ -z "$(broker_of "$PID")" ] || within 5 eval '[ -z "$(broker_of '"$PID"')" ]' ||
		fail "the broker of a killed target stays"
done

start "$BIN" 2 2000
snapshot "$PID" >"$T/before"
for i in $(seq "$N"); do
	rm -f "$T/trace"
	trace_start 3 "${DEFS[@]}"
	within 10 running || fail "no records"
	# A client that is to go as well must not cure before.
	if [ $((i % 3)) != 0 ]; then
		kill -STOP "$TRACE"
		within 10 grep -q '^State:.T' "/proc/$TRACE/status" || fail "the client doesn't stop"
	fi
	kill -9 "$(broker_of "$PID")"
	case $((i % 3)) in
	0) # the client cures
		within 15 gone "$TRACE" || fail "the trace doesn't end after its broker"
		wait "$TRACE" && fail "the trace says nothing about its broker's end"
		;;
	1) # both gone, a new one takes over
		kill -9 "$TRACE"
		wait "$TRACE" 2>>/dev/null || true
		serves "a$i" "the broker's end"
		rm -f "$T/trace"
		trace_start 3 "${DEFS[@]}"
		within 10 running || fail "no records after taking over"
		trace_end
		[ "$HITS" -gt 0 ] || fail "no hits after taking over"
		;;
	2) # both gone, cured
		kill -9 "$TRACE"
		wait "$TRACE" 2>>/dev/null || true
		serves "a$i" "the broker's end"
		! verified "$PID" || fail "verify is clean with an agent in"
		"$UKP" cure -p "$PID" >"$T/cure" 2>&1 || fail "cure: $(cat "$T/cure")"
		;;
	esac
	serves "b$i" "cure $((i % 3))"
	assert_untouched "$PID" "$T/before"
done

for i in $(seq "$N"); do
	rm -f "$T/trace"
	trace_start 3 "${DEFS[@]}"
	within 10 running || fail "no records"
	kill -9 "$TRACE"
	wait "$TRACE" 2>>/dev/null || true
	within 10 eval '[ -z "$(broker_of '"$PID"')" ]' || fail "the broker stays without clients"
	serves "c$i" "the client's end"
	assert_untouched "$PID" "$T/before"
done

# --- thousands of places, of which some have jumps by then ---------------------
rm -f "$T/trace"
"$UKP" stat -p "$PID" -o "$T/table" 'f libc:*' 'p work+*' 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 20 planted "$PID" 1000 || fail "nothing was planted"
alive "$TRACE" || fail "stat ended at once"
kill -STOP "$TRACE"
within 10 grep -q '^State:.T' "/proc/$TRACE/status" || fail "the client doesn't stop"
kill -9 "$(broker_of "$PID")"
kill -9 "$TRACE"
wait "$TRACE" 2>>/dev/null || true
! verified "$PID" || fail "verify is clean with thousands of probes in"
"$UKP" cure -p "$PID" >"$T/cure" 2>&1 || fail "cure: $(cat "$T/cure")"
serves d "the cure of thousands of places"
assert_untouched "$PID" "$T/before"
