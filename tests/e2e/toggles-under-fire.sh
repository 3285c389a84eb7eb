#!/bin/bash
# SPDX-License-Identifier: MIT
# Probes are planted and removed from outside while 8 threads, and the handler of
# a SIGPROF a thousand times a second, run through them: no result is wrong, and
# counts are exact.
. tests/e2e/lib.sh
TOGGLES=${LONG:+10000}
TOGGLES=${TOGGLES:-100}
EVERY=${LONG:+102}
EVERY=${EVERY:-26}
LIMIT_S=${LONG:+3000}
LIMIT_S=${LIMIT_S:-1100}
build straddle dynamic gcc
program=$BIN
build toggler session gcc -Iinclude "-L$O" -lukprobes "-Wl,-rpath,$PWD/$O"
UKPROBE=$UKP timeout -k 5 "$LIMIT_S" "$BIN" "$program" 8 "$TOGGLES" "$EVERY" >"$T/out" 2>&1 ||
	fail "toggler ($?): $(cat "$T/out")"
cat "$T/out"
for f in line_one line_many page_one page_many; do
	[ "$(value $f)" -gt 1000 ] || fail "$f was called too seldom"
done
