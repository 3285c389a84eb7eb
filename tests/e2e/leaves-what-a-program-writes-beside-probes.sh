#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that writes its own text, as one with static branches does, finds what it
# has written, however many probes are planted in the same pages and taken out
# meanwhile.
. tests/e2e/lib.sh
build poker dynamic gcc
start "$BIN"
export UKPROBES_OPTIMIZATION=0
for n in 16002 16002 2 2 2 2; do
	[ $n = 2 ] && places='+0' || places='+*'
	"$UKP" stat -p "$PID" --for 0.01 -o "$T/table" "p sled$places" "p runway$places" 2>"$T/err" ||
		fail "stat: $(cat "$T/err")"
	grep -q " 0  in 0 of $n places" "$T/table" || fail "not $n places: $(cat "$T/table")"
done
say still
await '^done'
eq "$(value wrong)" 0 "not what it had written"
verified "$PID" || fail "verify: $(cat "$T/verify")"
