#!/bin/bash
# SPDX-License-Identifier: MIT
# A name is no riddle because another part of its file is mapped twice; one that
# is in both copies is.
. tests/e2e/lib.sh
build twice dynamic gcc
start "$BIN"
trace_start 1 'p work'
within 10 test -s "$T/trace" || fail "no record"
trace_end
[ "$HITS" -gt 0 ] || fail "no hits"
verified "$PID" || fail "verify: $(cat "$T/verify")"
eq "$("$UKP" funcs -p "$PID" work | wc -l)" 1 "functions named work"
eq "$("$UKP" funcs -p "$PID" copied | wc -l)" 2 "functions named copied"
! "$UKP" trace -p "$PID" --for 1 'p copied' 2>"$T/err" || fail "a riddle is taken"
grep -q 'not unique' "$T/err" || fail "the riddle isn't told"
