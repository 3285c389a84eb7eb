#!/bin/bash
# SPDX-License-Identifier: MIT
# Results that are wider than a register, floating, or behind a hidden pointer, and
# floating arguments: what a probe says is what the caller got, by each mechanism,
# from breakpoints (the vector state is in a signal frame) and from jumps (it is in
# the registers).  All of that state is kept.
. tests/e2e/lib.sh

EVENTS=('r:float w_float v=$retval:f32' 'r:double w_double v=$retval:f64 bits=%xmm0:x64 st=$retval:f80'
	'r:long w_long v=$retval:f80' 'r:int128 w_int128 v=$retval:s128' 'r:small w_small v=$retval:u128'
	'r:words w_words v=$retval:x128 low=$retval:s64 high=%dx:s64' 'r:pair w_pair a=$retval:f64 b=%xmm1:f64'
	'r:mixed w_mixed a=$retval:s64 b=$retval:f64' 'r:floats w_floats a=$retval:f32 c=%xmm1:f32'
	'r:complex w_complex re=%xmm0:f64 im=%xmm1:f64' 'r:complexl w_complex_long re=%st0 im=%st1:f80'
	'r:complexf w_complex_float re=$retval:f32 both=%xmm0:x64'
	'r:big w_big a=+0($retval):s64 b=+8($retval):f64 c=+16($retval):f80 d=+32($arg1):s128 e=+48($retval):f32'
	'p:args w_args a=%xmm0:f64 n=%di:s32 b=%xmm1:f32 s=+8(%sp):f80 c=%xmm2:f64'
	'r:keeps keeps a=%xmm0 st=$retval:f80 b=%xmm15' 'p:keptin keeps v=%xmm3:x128 st=%st1')

round()
{
	: >"$T/out"
	say go
	await '^kept'
	cp "$T/out" "$1"
}

# Wherever jumps are to come: the entries and what catches the returns.
jumped()
{
	"$UKP" list -p "$PID" >"$T/list"
	[ "$(grep -c OPTIMIZED "$T/list")" -ge 15 ] && ! grep -Eq 'on its way|being looked for|wait for' "$T/list"
}

mechanisms()
{
	"$UKP" list -p "$PID" | sed -n 's/.* ret=\([a-z]*\) .*/\1/p' | sort -u | tr '\n' ' '
}

lines()
{
	sed 's/^[^:]*: \([a-z0-9]*: \)(.*) /\1/' "$T/trace" | sort
}

export UKPROBES_OPTIMIZATION
build wide gcc gcc
start "$BIN"
round "$T/without"
grep -q '^kept 8$' "$T/without" || fail "the target itself keeps nothing: $(tail -1 "$T/without")"
grep : "$T/without" | sort >"$T/expected"
snapshot "$PID" >"$T/before"
for how in '0 slot' '0 exit' '1 slot' '1 call' '1 exit' '1 auto'; do
	read -r UKPROBES_OPTIMIZATION ret <<<"$how"
	trace_start 16 "--ret=$ret" "${EVENTS[@]}"
	[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 30 jumped || fail "$how: $(cat "$T/list")"
	[ "$ret" = auto ] || eq "$(mechanisms)" "$ret " "$how: mechanisms"
	round "$T/with"
	trace_end
	diff "$T/without" "$T/with" >"$T/diff" || fail "$how: other results: $(cat "$T/diff")"
	lines | diff "$T/expected" - >"$T/diff" || fail "$how: other values: $(cat "$T/diff")"
	eq "$HITS $MISSES" "128 0" "$how: hits and misses"
done
assert_untouched "$PID" "$T/before"
