#!/bin/bash
# SPDX-License-Identifier: MIT
# stat of returns: beside entries in one table, exact with threads, recursion
# and signals; what never came back is missed by reason and never counted.
. tests/e2e/lib.sh

# counts PLACE: of a place in the table, 0 without a line.  With its function's
# name alone, an entry; FUNC%return: its returns.
counts()
{
	awk -v p="$1" '{ sub(/\+0x0\/0x[0-9a-f]*$/, "", $2) } $2 == p { n = $1 } END { print n + 0 }' \
		"$T/table"
}

missed()
{
	sed -n 's/^ *\([0-9]*\)  calls without a return (\(.*\))$/\1 \2/p' "$T/table"
}

refused()
{
	sed -n 's/^ukprobe: \([0-9]*\) places are not probed.*/\1/p' "$T/err" | awk '{ n += $1 } END { print n + 0 }'
}

# --- the four ways to say it, beside entries, with recursion and signals ------
build counter dynamic gcc
start "$BIN" 1 320 recurse=5
snapshot "$PID" loose >"$T/before"
for def in 'r recurse' 'p recurse%return' 'f counter.dynamic:recurs?%return' 'r counter.dynamic:recurs?'; do
	before=$(value recurse)
	: >"$T/out"
	stat_start 3 "$def" 'p recurse' 'r work'
	say go
	await '^done' 60
	stat_end
	now=$(($(value recurse) - ${before:-0}))
	eq "$now" 120 "calls that the target has made"
	eq "$(counts recurse%return) $(counts recurse) $(counts work%return)" "120 120 320" "$def"
	eq "$(tail -1 "$T/table" | awk '{ print $1, $3, $5 }')" "560 3 3" "hits, places hit, places"
	eq "$(missed)" "" "misses"
	grep -q ' recurse%return$' "$T/table" || fail "the kernel's style: $(cat "$T/table")"
	echo "recurse $(value recurse)" >"$T/out"
	assert_untouched "$PID" "$T/before" loose
done
say end

# --- threads that come and go, a signal's handler, and one stat beside another -
start "$BIN" 4 2000 born sigprof
snapshot "$PID" loose >"$T/before"
stat_start 4 'r counter.dynamic:[tw]*[ck]' 'p work' 'p tick'
say go
"$UKP" stat -p "$PID" --for 0.3 'r work' 'p tick' >"$T/other" 2>&1 || fail "two at once: $(cat "$T/other")"
await '^done' 60
stat_end
eq "$(value wrong)" 0 "wrong results in the target"
eq "$(counts work%return) $(counts work)" "$(value work) $(value work)" "work"
eq "$(counts tick%return) $(counts tick)" "$(value tick) $(value tick)" "tick"
eq "$(missed)" "" "misses"
assert_untouched "$PID" "$T/before" loose

# --- the same from a jump ------------------------------------------------------
: >"$T/out"
say end
start "$BIN" 4 2000 recurse=5
snapshot "$PID" loose >"$T/before"
optimized() { [ "$("$UKP" list -p "$PID" | grep -c '\[OPTIMIZED\]')" = 3 ]; }
stat_start 3 'r work' 'p work' 'r recurse'
within 20 optimized || fail "no jumps: $("$UKP" list -p "$PID")"
say go
await '^done' 60
stat_end
eq "$(value wrong)" 0 "wrong results in the target"
eq "$(counts work%return) $(counts work) $(counts recurse%return)" "8000 8000 3000" "from jumps"
eq "$(missed)" "" "misses"
assert_untouched "$PID" "$T/before" loose

# --- no more at a time than is asked for; each call is a return or a miss ------
: >"$T/out"
say end
start "$BIN" 1 160 recurse=5
snapshot "$PID" loose >"$T/before"
stat_start 2 'r2 recurse' 'p recurse'
say go
await '^done' 60
stat_end
eq "$(counts recurse%return) $(counts recurse)" "20 60" "of six calls inside each other two are followed"
eq "$(missed)" "40 maxactive 40" "misses"
assert_untouched "$PID" "$T/before" loose

# --- JSON ---------------------------------------------------------------------
: >"$T/out"
stat_start 2 --json 'r recurse' 'p recurse'
say go
await '^done' 60
stat_end
grep -q '"places":2,"hit":2,"hits":120,"calls":60,"missed":0,"misses":{},' "$T/table" ||
	fail "JSON: $(cat "$T/table")"
eq "$(grep -c '"return":true,"hits":60,"place":"recurse%return' "$T/table")" 1 "returns in the JSON"
eq "$(grep -c '"return":false,"hits":60,"place":"recurse+0x0/' "$T/table")" 1 "entries in the JSON"
assert_untouched "$PID" "$T/before" loose
say end

# --- what can't have a return is refused by reason; --strict ------------------
build steps dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"
stat_start 1 'f steps.dynamic:*%return'
say go 7 5
await '^sum 140'
stat_end
all=$(readelf -sW "$BIN" | awk '$4 == "FUNC" && $7 != "UND" { print $2 }' | sort -u | wc -l)
[ "$(refused)" -ge 3 ] || fail "refused: $(refused)"
eq "$(($(tail -1 "$T/table" | awk '{ print $5 }') + $(refused)))" "$all" "planted and refused functions"
eq "$(counts steps%return)" 5 "returns of steps"
assert_untouched "$PID" "$T/before"
if "$UKP" stat -p "$PID" --strict --for 0.1 'r steps.dynamic:*' >"$T/table" 2>"$T/err"; then
	fail "--strict planted all the same"
fi
grep -q "of $all places cannot be probed" "$T/err" || fail "no reason is given"
for def in 'r steps+3' 'r steps+*' 'r steps $retval' 'r nosuch*' 'r steps.cold'; do
	if "$UKP" stat -p "$PID" --for 0.1 "$def" >"$T/table" 2>"$T/err"; then
		fail "'$def' is accepted"
	fi
	grep -q '^ukprobe: ' "$T/err" || fail "no reason is given for '$def'"
done
assert_untouched "$PID" "$T/before"

# --- a command, with its probes in before main ---------------------------------
echo 'go 3 100' >"$T/lines"
"$UKP" stat -o "$T/table" 'r steps' 'p steps' 'r main' -- "$BIN" <"$T/lines" >"$T/said" 2>"$T/err" ||
	fail "the command failed"
grep -q '^sum 600' "$T/said" || fail "the command said $(cat "$T/said")"
eq "$(counts steps%return) $(counts steps) $(counts main%return)" "100 100 1" "counts of a command"
eq "$(missed)" "" "misses"

# --- one that never comes back ------------------------------------------------
"$UKP" stat -o "$T/table" 'r exit' 'p exit' 'r steps' -- "$BIN" <"$T/lines" >"$T/said" 2>"$T/err" ||
	fail "the command failed"
eq "$(counts exit%return) $(counts exit) $(counts steps%return)" "0 1 100" "exit doesn't return"
eq "$(missed)" "1 unreturned 1" "misses"

# --- still inside when the probes go -------------------------------------------
start "$BIN"
snapshot "$PID" >"$T/before"
inside() { [ "$(cut -d " " -f 1 "/proc/$PID/syscall")" = 0 ]; }
stat_start 2 'r steps.dynamic:*steps' 'r read'
say go 7 5
await '^sum 140'
within 20 inside || fail "the target doesn't read"
stat_end
eq "$(counts steps%return)" 5 "returns of steps"
eq "$(missed)" "1 unreturned 1" "the read that goes on"
assert_untouched "$PID" "$T/before"
: >"$T/out"
say go 7 5
await '^sum 140'

# --- exceptions, and who walks the stack ----------------------------------------
build unwind cc g++ -O1 || { without exceptions "g++ is not there"; exit 0; }
start "$BIN"
snapshot "$PID" >"$T/before"
stat_start 4 --ret=slot 'r thrower' 'r middle' 'f outer%return' 'r tracer' 'p outer'
say go
await '^done'
stat_end
eq "$(value caught)" 300 "exceptions caught"
# When one is thrown, all calls that are on their way then are given up.
eq "$(counts thrower%return) $(counts middle%return) $(counts outer%return)" "200 200 200" \
	"returns beside 200 exceptions"
eq "$(counts tracer%return) $(counts outer)" "0 400" "returns of tracer, entries of outer"
eq "$(missed)" "611 unwound 611" "misses"
assert_untouched "$PID" "$T/before"

# Exit sites lose only what was left for good.
: >"$T/out"
stat_start 4 --ret=exit 'r thrower' 'r middle' 'f outer%return' 'r tracer' 'p outer'
say go
await '^done'
stat_end
eq "$(value caught)" 300 "exceptions caught"
eq "$(counts thrower%return) $(counts middle%return) $(counts outer%return)" "200 200 300" \
	"returns beside 200 exceptions, by exit sites"
eq "$(counts tracer%return) $(counts outer)" "11 400" "returns of tracer, entries of outer"
eq "$(missed | cut -d ' ' -f 1)" "500" "misses by exit sites"
assert_untouched "$PID" "$T/before"
