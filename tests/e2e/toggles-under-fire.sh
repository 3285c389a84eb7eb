#!/bin/bash
# SPDX-License-Identifier: MIT
# Jumps are planted and removed from outside while 8 threads, and the handler of a
# SIGPROF that each gets a thousand times a second, run through them: no result is
# wrong, and counts are exact.
. tests/e2e/lib.sh
JUMPS=${LONG:+10000}
JUMPS=${JUMPS:-207}
LIMIT_S=${LONG:+3000}
LIMIT_S=${LIMIT_S:-1100}
build straddle dynamic gcc
program=$BIN
build toggler session gcc -Iinclude "-L$O" -lukprobes "-Wl,-rpath,$PWD/$O"
UKPROBE=$UKP timeout -k 5 "$LIMIT_S" "$BIN" "$program" 8 "$JUMPS" >"$T/out" 2>&1 ||
	fail "toggler ($?): $(cat "$T/out")"
cat "$T/out"
eq "$(grep -c '^win_' "$T/out")" 48 "windows"
for calls in $(sed -n 's/^win_[^ ]* //p' "$T/out"); do
	[ "$calls" -gt 1000 ] || fail "a window was called too seldom"
done
[ "$(value signals)" -gt 0 ] || fail "no signal came"
