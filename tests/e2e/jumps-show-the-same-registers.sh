#!/bin/bash
# SPDX-License-Identifier: MIT
# A record made behind a jump shows what one made at a breakpoint does: each
# register alone, so that others are not saved for it, and all together.
. tests/e2e/lib.sh
build steps dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"
REGS=(ax bx cx dx si di bp sp ip flags r8 r9 r10 r11 r12 r13 r14 r15 cs ss orig_ax)

form_is()
{
	"$UKP" list -p "$PID" >"$T/list" 2>&1
	[ "$(grep -c "steps.*$1" "$T/list")" -ge "$2" ]
}

# lines FORM COUNT DEF...: what the events say, times and CPUs aside
lines()
{
	local form=$1 n=$2

	shift 2
	trace_start "$#" "$@"
	within 30 form_is "$form" "$#" || fail "$form: $(cat "$T/list")"
	: >"$T/out"
	say go 3 5
	await '^sum 30'
	trace_end
	eq "$HITS $RECORDS" "$n $n" "hits and records"
	sed 's/^[^:]*: //' "$T/trace" | sort
}

all=
one=()
for r in "${REGS[@]}"; do
	all="$all $r=%$r"
	one+=("p:$r steps+2 v=%$r")
done
n=$((5 * ${#REGS[@]}))
export UKPROBES_OPTIMIZATION=0
lines 'int3: optimization is off' 5 "p:all steps+2$all s=\$stack w=\$stack0" >"$T/all.int3"
lines 'int3: optimization is off' "$n" "${one[@]}" >"$T/one.int3"
unset UKPROBES_OPTIMIZATION
lines '\[OPTIMIZED\] jump' 5 "p:all steps+2$all s=\$stack w=\$stack0" >"$T/all.jump"
lines '\[OPTIMIZED\] jump' "$n" "${one[@]}" >"$T/one.jump"
diff "$T/all.int3" "$T/all.jump" || fail "all registers differ"
diff "$T/one.int3" "$T/one.jump" || fail "single registers differ"
# Each alone, in a detour that saves little else.
for r in "${REGS[@]}"; do
	lines '\[OPTIMIZED\] jump' 5 "p:$r steps+2 v=%$r" >"$T/single"
	grep "^$r: " "$T/one.int3" | diff - "$T/single" || fail "%$r differs alone"
done
assert_untouched "$PID" "$T/before"
cat "$T/all.jump" | head -1
