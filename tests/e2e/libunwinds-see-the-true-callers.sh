#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that walks its own stack step by step, with nongnu's and with LLVM's
# libunwind, from functions and from a signal handler inside of probed ones: by each
# mechanism it has been where it is without probes, and hits = calls.  Exit sites
# report every return.
. tests/e2e/lib.sh

LIB=/usr/lib/x86_64-linux-gnu
ROUNDS=4

rounds()
{
	: >"$T/out"
	for ((i = 0; i < ROUNDS; i++)); do
		say go
	done
	within 30 ended || fail "$NAME: the target said $(tail -1 "$T/out")"
	sort -u "$T/out" >"$1"
}

ended()
{
	[ "$(grep -c '^done' "$T/out")" = $ROUNDS ] || ! alive "$PID"
}

jumped()
{
	[ "$("$UKP" list -p "$PID" | grep -c OPTIMIZED)" -ge 4 ] || ! alive "$TRACE"
}

walks()
{
	start "$BIN"
	rounds "$T/without"
	eq "$(wc -l <"$T/without")" $((LEAVES + 1)) "$NAME: lines"
	for how in '0 slot' '1 call' '1 exit'; do
		read -r UKPROBES_OPTIMIZATION RET <<<"$how"
		trace_start $((LEAVES + 2)) "--ret=$RET" "r:u ${BIN##*/}:u_* \$retval"
		[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 30 jumped || fail "$NAME, $how: no jumps come"
		rounds "$T/with"
		trace_end
		diff "$T/without" "$T/with" || fail "$NAME, $how: it has been elsewhere"
		# Nine calls and a leaf, and the handler's walk.
		eq "$HITS" $((ROUNDS * (LEAVES * 10 + 1))) "$NAME, $how: hits"
		[ "$RET" != exit ] || eq "$MISSES" 0 "$NAME, $how: $WHY"
	done
	verified "$PID" || fail "$NAME: $(cat "$T/verify")"
}

export UKPROBES_OPTIMIZATION
for NAME in nongnu LLVM; do
	so=libunwind.so.8 LEAVES=3
	# It has no unw_backtrace().
	[ $NAME = nongnu ] || so=libunwind.so.1 LEAVES=2
	[ -e "$LIB/$so" ] || { without "$NAME" "there is no $so"; continue; }
	build unwstep "$NAME" gcc "-D${NAME}" "$LIB/$so"
	walks
done
