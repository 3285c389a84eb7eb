#!/bin/bash
# SPDX-License-Identifier: MIT
# Definitions of many places: all functions of a library under its user, what
# is refused and --strict, counts by place against what is known to have run,
# planting and removing under fire.
. tests/e2e/lib.sh

# hits PLACE: of a place in the table, 0 without a line
hits()
{
	awk -v p="$1" '$2 == p { n = $1 } END { print n + 0 }' "$T/table"
}

refused()
{
	sed -n 's/^ukprobe: \([0-9]*\) places are not probed.*/\1/p' "$T/err" | awk '{ n += $1 } END { print n + 0 }'
}

json()
{
	sed -n "s/.*\"$1\":\([0-9]*\),.*/\1/p" "$2" | head -1
}

# --- coverage: each instruction of a small function -------------------------
build steps dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"
stat_start 9 'p steps+*'
say go 7 5
await '^sum 140'
stat_end
eq "$(tail -1 "$T/table" | awk '{ print $1, $3, $5 }')" "125 7 9" "hits, places hit, places"
eq "$(awk '$1 == 35' "$T/table" | wc -l)" 3 "instructions of the loop"
eq "$(awk '$1 == 5' "$T/table" | wc -l)" 4 "instructions around it"
assert_untouched "$PID" "$T/before"

# --- the same of all that match, and of a whole file, refused ones aside -----
stat_start 9 'p steps.dynamic:st?ps+*' 'p steps.dynamic:*+*'
say go 7 5
await '^sum 140'
stat_end
awk '$2 ~ /^steps\+/' "$T/table" >"$T/steps"
eq "$(awk '{ n += $1 } END { print n, NR }' "$T/steps")" "125 7" "hits and places of steps"
eq "$(awk '$1 == 35' "$T/steps" | wc -l)" 3 "instructions of the loop"
[ "$(awk '$2 ~ /^main\+/' "$T/table" | wc -l)" -ge 10 ] || fail "main was not counted"
eq "$(refused)" 2 "an int3 and a far return"
assert_untouched "$PID" "$T/before"

# --- refused and planted are all there are ----------------------------------
"$UKP" stat -p "$PID" --for 0.1 --json -o "$T/json" 'f steps.dynamic:*' 2>"$T/err"
all=$(readelf -sW "$BIN" | awk '$4 == "FUNC" && $7 != "UND" { print $2 }' | sort -u | wc -l)
eq $(($(json places "$T/json") + $(refused))) "$all" "planted and refused functions"
eq "$(refused)" 3 "refused"
eq "$(grep -c '"address"' "$T/json")" "$(json places "$T/json")" "places in the JSON"
assert_untouched "$PID" "$T/before"

# --- --strict refuses the whole ---------------------------------------------
if "$UKP" trace -p "$PID" --strict --for 0.1 'f steps.dynamic:*' >"$T/trace" 2>"$T/err"; then
	fail "--strict planted all the same"
fi
grep -q "3 of $all places cannot be probed" "$T/err" || fail "no reason is given"
"$UKP" trace -p "$PID" --for 0.1 --strict 'f steps.dynamic:step?' 2>"$T/err" >"$T/trace"
assert_untouched "$PID" "$T/before"
if "$UKP" stat -p "$PID" --for 0.1 'f steps.dynamic:*far' >"$T/trace" 2>"$T/err"; then
	fail "nothing to plant is no failure"
fi
grep -q 'none of the 1 places' "$T/err" || fail "no reason is given"
if "$UKP" trace -p "$PID" --for 0.1 'f nosuch*' >"$T/trace" 2>"$T/err"; then
	fail "a glob that matches nothing is accepted"
fi
assert_untouched "$PID" "$T/before"

# --- one event, many functions ----------------------------------------------
trace_start 2 'f:in steps.dynamic:step[s]' 'f:out steps.dynamic:step?%return $retval'
say go 3 100
await '^sum 600'
trace_end
eq "$HITS $MISSES" "200 0" "hits and misses"
eq "$(grep -c ': in: (steps+0x0/' "$T/trace")" 100 "entries"
eq "$(grep -c ': out: (.* <- steps) arg1=0x6' "$T/trace")" 100 "returns"
assert_untouched "$PID" "$T/before"

# --- functions without a name: by what unwinds them, at their entries -----------
build counter nameless gcc -s
start "$BIN" 1 1000
snapshot "$PID" loose >"$T/before"
stat_start 3 'f counter.nameless:*'
say go
await '^done' 60
stat_end
work=$(value work)
[ "$work" -ge 1000 ] || fail "the target has not worked"
awk -v n="$work" '$1 == n && $2 ~ /^counter.nameless:0x[0-9a-f]+$/' "$T/table" | grep -q . ||
	fail "no function without a name was hit $work times: $(cat "$T/table")"
assert_untouched "$PID" "$T/before" loose
"$UKP" stat -p "$PID" --for 0.1 'f counter.nameless:*%return' >"$T/table" 2>"$T/err" || true
grep -q 'it has no name, and may be one that looks at its return address' "$T/err" ||
	fail "returns of functions without a name are followed"
if "$UKP" stat -p "$PID" --for 0.1 'f counter.nameless:w*' >"$T/table" 2>"$T/err"; then
	fail "another pattern than * takes functions without a name"
fi
assert_untouched "$PID" "$T/before" loose

# --- under fire: threads run through what is planted and removed -------------
CALLS=${LONG:+20000}
CALLS=${CALLS:-2000}
build counter dynamic gcc
start "$BIN" 4 "$CALLS"
snapshot "$PID" loose >"$T/before"
stat_start 20 'f counter.dynamic:*' 'p work+*'
say go
for _ in 1 2 3 4 5; do
	"$UKP" stat -p "$PID" --for 0.05 'f counter.dynamic:*' 'f libc:*' >/dev/null 2>&1
done
await '^done' 60
stat_end
eq "$(value wrong)" 0 "wrong results in the target"
place=$(awk '$2 ~ /^work\+0x0\// { print $2 }' "$T/table")
eq "$(hits "$place")" "$(value work)" "calls of work"
assert_untouched "$PID" "$T/before" loose
say end

# --- a whole library under its user -----------------------------------------
cat >"$T/user.py" <<'EOF'
import random, sys, zlib
print("ready", flush=True)
for line in sys.stdin:
    r = random.Random(1)
    crc = 0
    for i in range(int(line)):
        data = bytes(r.choices(b"abcdefgh \n", k=r.randrange(1, 20000)))
        packed = zlib.compress(data, i % 10)
        assert zlib.decompress(packed) == data
        crc = zlib.crc32(packed, crc)
    print("crc", crc, zlib.adler32(packed), flush=True)
EOF
if [ ! -x /usr/bin/python3 ]; then
	without "libz under python3" "no /usr/bin/python3"
	exit 0
fi
start /usr/bin/python3 "$T/user.py"
if ! grep -q 'libz\.so' "/proc/$PID/maps"; then
	without "libz under python3" "this python3 has no shared libz"
	exit 0
fi
say 200
await '^crc'
plain=$(value crc)
: >"$T/out"
stat_start 50 --json 'f libz:*'
say 200
await '^crc' 60
stat_end
eq "$(value crc)" "$plain" "what the library computed"
calls=$(sed -n 's/.*"hits":\([0-9]*\),"place":"deflateInit2_+.*/\1/p' "$T/table")
eq "$calls" 200 "calls of deflateInit2_"
verified "$PID" || fail "verify: $(cat "$T/verify")"

# --- each instruction of it --------------------------------------------------
: >"$T/out"
say 3
await '^crc'
plain=$(value crc)
: >"$T/out"
stat_start 5000 'p libz:*+*'
say 3
await '^crc' 60
stat_end
eq "$(value crc)" "$plain" "what the library computed, each instruction probed"
echo "each instruction: $(tail -1 "$T/table")"
verified "$PID" || fail "verify: $(cat "$T/verify")"

# --- all functions of libLLVM under clang -------------------------------------
llvm=$({ ldconfig -p | grep -o -m 1 'libLLVM-14\.so' | head -1; } 2>>/dev/null || true)
if [ -z "$llvm" ] || ! command -v clang-14 >/dev/null; then
	without "libLLVM under clang-14" "one of them is not installed"
	exit 0
fi
clang-14 -O1 -c -o "$T/plain.o" tests/targets/steps.c
"$UKP" stat -o "$T/table" 'f libLLVM-14:*' -- clang-14 -O1 -c -o "$T/probed.o" \
	tests/targets/steps.c 2>"$T/err" || fail "clang under probes failed"
cmp "$T/plain.o" "$T/probed.o" || fail "clang has made something else"
echo "libLLVM: $(tail -1 "$T/table")"
