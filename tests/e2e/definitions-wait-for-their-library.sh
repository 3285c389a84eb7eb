#!/bin/bash
# SPDX-License-Identifier: MIT
# A definition in a library that isn't loaded waits, lands before the library's
# constructors run, goes with the library and comes again with it.  What is loaded
# in the library's place is left alone; what never landed is told with its reason.
. tests/e2e/lib.sh

CTOR=7

library()
{
	gcc -O1 -g -fPIC -shared -DLIBRARY "-DCALLS=$CTOR" "${@:2}" -o "$T/$1" tests/targets/late.c
}

tell()
{
	: >"$T/out"
	say "$*"
	await '^done'
	eq "$(value wrong)" 0 "$*: wrong"
}

# waiting N ARG...: a trace of which N definitions wait
waiting()
{
	trace_start 0 "${@:2}"
	within 20 said_waiting "$1" || fail "it doesn't say that $1 wait"
	alive "$TRACE" || fail "the trace ended at once"
}

said_waiting()
{
	[ "$(grep -c '^ukprobe: waiting: ' "$T/err")" = "$1" ] || ! alive "$TRACE"
}

library liblate.so
library libother.so -DOTHER=1
build late dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"

# --- it comes, goes, and comes again ------------------------------------------
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	waiting 2 'p liblate.so:late_work n=$arg1:u64' 'r liblate.so:late_work $retval:u64'
	calls=0
	for _ in 1 2 3; do
		tell load "$T/liblate.so"
		tell call 50
		calls=$((calls + CTOR + 50))
		tell unload
		# Somebody else in its place, mostly.
		tell load "$T/libother.so"
		tell call 50
		tell unload
	done
	tell load "$T/libother.so"
	trace_end
	eq "$STATUS" 0 status
	eq "$HITS" $((2 * calls)) hits
	eq "$RECORDS" "$HITS" records
	eq "$(grep -c ' n=6$' "$T/trace")" 6 'of constructors and calls'
	! grep -q 'never' "$T/err" || fail 'something is said not to have been'
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	tell unload
	assert_untouched "$PID" "$T/before"
done
unset UKPROBES_OPTIMIZATION

# --- latency, and beside a probe that is in ------------------------------------
"$UKP" latency -p "$PID" --json -o "$T/json" liblate.so:late_work main 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 20 said_waiting 1 || fail 'latency: nothing waits'
tell load "$T/liblate.so"
tell call 50
kill -INT "$TRACE"
wait "$TRACE" || fail "latency: $?"
grep -Eq '"count": ?'$((CTOR + 50))'\b' "$T/json" || fail "latency: $(cat "$T/json")"
tell unload
assert_untouched "$PID" "$T/before"

# --- a library that was there from the start --------------------------------------
tell load "$T/liblate.so"
stat_start 1 'p liblate.so:late_work'
tell call 50
tell unload
tell load "$T/libother.so"
# Whoever changes something next looks at what is there.
"$UKP" trace -p "$PID" --for 0.01 'p main' 2>"$T/other" || fail "beside it: $(cat "$T/other")"
"$UKP" list -p "$PID" >"$T/list"
grep -q '\[GONE\] int3: its library was unloaded' "$T/list" || fail "gone: $(cat "$T/list")"
tell call 50
stat_end
grep -Eq '^ *50 ' "$T/table" || fail "gone: $(cat "$T/table")"
verified "$PID" || fail "gone: verify: $(cat "$T/verify")"
tell unload
assert_untouched "$PID" "$T/before"

# --- what never lands -----------------------------------------------------------
waiting 2 'p liblate.so:nowhere' 'p libnone.so:late_work'
tell load "$T/liblate.so"
tell call 50
trace_end
eq "$HITS" 0 'never landed: hits'
grep -q "never probed: liblate.so:nowhere: .*no symbol nowhere" "$T/err" || fail 'no reason for nowhere'
grep -q 'never probed: libnone.so:late_work: libnone.so is not loaded' "$T/err" || fail 'no reason for libnone'
! grep -q 'never hit' "$T/err" || fail 'it is said twice'
tell unload
assert_untouched "$PID" "$T/before"

# --- where its own probe is, a user's stays when nobody waits any more ------------
"$UKP" trace -p "$PID" -o "$T/hook" 'p:hook _dl_debug_state' >"$T/other" 2>&1 &
HOOK=$!
PIDS+=("$HOOK")
TRACE=$HOOK
within 20 planted "$PID" 1 || fail "hook: nothing was planted"
waiting 1 'p liblate.so:late_work'
trace_end
tell load "$T/liblate.so"
kill -INT "$HOOK"
wait "$HOOK" || fail "hook: $(cat "$T/other")"
grep -q ' hook: ' "$T/hook" || fail "hook: no hit, nobody waits: $(cat "$T/other")"
tell unload
assert_untouched "$PID" "$T/before"

# --- both sides are killed while it waits ---------------------------------------
waiting 1 'p liblate.so:late_work'
kill_both
tell load "$T/liblate.so"
tell unload
within 30 cured || fail "cure: $(cat "$T/cure")"
assert_untouched "$PID" "$T/before"

# --- refused --------------------------------------------------------------------
refused()
{
	! timeout "$PATIENCE" "$UKP" trace -p "$PID" "${@:2}" >"$T/out.r" 2>"$T/err" || fail "${*:2}: not refused"
	grep -q "$1" "$T/err" || fail "${*:2}: the reason isn't '$1'"
}

refused "no module 'libnone.so' is mapped" --strict 'p libnone.so:f'
refused "no module 'late.c' is mapped" 'p late.c:call'
refused "no module 'libnone.so' is mapped" 'f libnone.so:*'
assert_untouched "$PID" "$T/before"
build counter static-stripped gcc -static -s
start "$BIN" 1 1
refused 'no dynamic linker' 'p libnone.so:f'
