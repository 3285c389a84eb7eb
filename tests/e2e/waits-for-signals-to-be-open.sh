#!/bin/bash
# SPDX-License-Identifier: MIT
# Who blocks all signals for a moment only, as libc does when it makes a thread,
# is met again after it and not refused.
. tests/e2e/lib.sh
build spawner dynamic gcc
start "$BIN" 60
for i in 1 2 3 4 5 6 7 8 9 10; do
	timeout "$PATIENCE" "$UKP" trace -p "$PID" --for 0.05 -o "$T/trace" 'p work' 2>"$T/err" ||
		fail "attach $i: $(cat "$T/err")"
	figures "$T/err"
	verified "$PID" || fail "verify: $(cat "$T/verify")"
done
alive "$PID" || fail "the target ended"
