#!/bin/bash
# SPDX-License-Identifier: MIT
# Every instruction of functions has a probe, nearly all in the jump form, several
# under one jump, while threads and a signal handler run through them: each is
# counted to the unit, while probes among them come and go.
. tests/e2e/lib.sh
build blocks dynamic gcc
CALLS=${LONG:+400000}
CALLS=${CALLS:-8000}

# In the jump form, and what keeps the others from it.
jumps()
{
	"$UKP" list -p "$PID" | grep -c '\[OPTIMIZED\]' || true
}

have_jumps()
{
	[ "$(jumps)" -ge "$1" ]
}

# The table has so many places with this number of hits.
places_with()
{
	eq "$(awk -v n="$1" '$1 == n && $2 ~ /^(blocks|leaf)\+/' "$T/table" | wc -l)" "$2" "places with $1 hits, $3"
}

# once TIMES: the table after blocks(3) was called so often
check()
{
	places_with "$1" 11 "$2"
	places_with $((3 * $1)) 7 "$2"
}

start "$BIN" 4 "$CALLS"
snapshot "$PID" loose >"$T/before"

# --- all of them counted ------------------------------------------------------
stat_start 18 'p blocks+*' 'p leaf+*'
within 30 have_jumps 16 || fail "too few jumps: $("$UKP" list -p "$PID")"
"$UKP" list -p "$PID" >"$T/list"
eq "$(grep -c 'leaf+.*OPTIMIZED' "$T/list")" 2 "jumps in a short function"
eq "$(grep -c 'int3: a branch leads into the jump' "$T/list")" 2 "instructions without room"
say go
await '^done' 120
eq "$(jumps)" 16 "jumps in the end"
stat_end
eq "$(value wrong)" 0 "wrong results"
check "$(value called)" "counted"
assert_untouched "$PID" "$T/before" loose

# --- one alone, with no room behind it: its jump begins before it ---------------
before=$(value called)
: >"$T/out"
"$UKP" stat -p "$PID" -o "$T/table" 'p blocks+10' 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 30 have_jumps 1 || fail "no jump for the branch: $("$UKP" list -p "$PID")"
say go
await '^done' 120
stat_end
eq "$(value wrong)" 0 "wrong results"
eq "$(awk '$2 ~ /^blocks\+0xa\// { print $1 }' "$T/table")" $(($(value called) - before)) "hits of the branch"
assert_untouched "$PID" "$T/before" loose

# --- a child has the jumps, and counts nothing ---------------------------------
stat_start 18 'p blocks+*' 'p leaf+*'
within 30 have_jumps 16 || fail "too few jumps: $("$UKP" list -p "$PID")"
before=$(value called)
: >"$T/out"
say fork
await '^done' 120
stat_end
eq "$(value wrong)" 0 "wrong results, the child's among them"
check $(($(value called) - before)) "counted beside a child"
assert_untouched "$PID" "$T/before" loose

# --- a killed broker leaves jumps, a cure takes them out ------------------------
stat_start 18 'p blocks+*' 'p leaf+*'
within 30 have_jumps 16 || fail "too few jumps: $("$UKP" list -p "$PID")"
kill_both
: >"$T/out"
say go
await '^done' 120
eq "$(value wrong)" 0 "wrong results without a broker"
! verified "$PID" || fail "nothing was left of the killed broker's"
cured || fail "cure: $(cat "$T/cure")"
assert_untouched "$PID" "$T/before" loose
: >"$T/out"
say go
await '^done' 120
eq "$(value wrong)" 0 "wrong results after the cure"

# --- others come and go among them meanwhile ----------------------------------
stat_start 18 'p blocks+*' 'p leaf+*'
before=$(value called)
: >"$T/out"
say go
rounds=0 seen=0
while ! grep -q '^done' "$T/out"; do
	"$UKP" trace -p "$PID" -n 20 --for 2 'p:mid blocks+4 a=%di:u32 b=%bx:u32' 'r:leaf leaf $retval' >"$T/second" 2>&1 || fail "$(cat "$T/second")"
	eq "$(grep -c ': mid: .* a=3 b=3$' "$T/second")" "$(grep -c ': mid: ' "$T/second")" "arguments of the second"
	rounds=$((rounds + 1))
	alive "$PID" || fail "the target has died"
	[ "$rounds" -lt 200 ] || break
	if shortly 1 have_jumps 16; then
		seen=$((seen + 1))
	fi
	grep -q '^done' "$T/out" && break
done
await '^done' 120
stat_end
eq "$(value wrong)" 0 "wrong results"
check $(($(value called) - before)) "counted while others came and went"
assert_untouched "$PID" "$T/before" loose
say end
echo "$(value called) calls, $rounds times somebody else, jumps back in $seen"
