#!/bin/bash
# SPDX-License-Identifier: MIT
# Python with greenlets, whose C stacks are copied away and back, under return
# probes on the interpreter's functions: results as without, every call returns or is
# said to be missing, and who is away when the probes go comes back.
. tests/e2e/lib.sh

PYTHON=/usr/bin/python3.11
"$PYTHON" -c 'import greenlet' 2>>/dev/null || skip "Debian's python3-greenlet is not there"
PLACES='PyObject_* PyIter_* PyList_* _PyFunction_*'

run_case()
{
	: >"$T/out"
	say "$1 $2"
	await "^done $1\$" 60
	grep '^result' "$T/out" | tee "$T/result" | grep -q . || fail "$1: no result"
}

jumped()
{
	[ "$("$UKP" list -p "$PID" 2>>/dev/null | grep -c OPTIMIZED)" -ge 20 ] || ! alive "$TRACE"
}

# Entries, then returns and misses.
totals()
{
	awk '/calls without a return/ { r += $1; next } / in [0-9]* of / { next }
		$2 ~ /%return/ { r += $1; next } { e += $1 } END { print e + 0, r + 0 }' "$T/table"
}

export UKPROBES_OPTIMIZATION
start "$PYTHON" tests/targets/greenlets.py
run_case runs 60
mv "$T/result" "$T/want"
run_case goes 1
run_case comes 1
mv "$T/result" "$T/came"
snapshot "$PID" loose >"$T/before"
for how in '0 slot' '1 call' '1 auto'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	defs=()
	# Its switch keeps the jump away that a call in place needs.
	[ "$RET" = call ] && loop= || loop=_PyEval_EvalFrameDefault
	for place in $loop $PLACES; do
		defs+=("f python3.11:$place" "f python3.11:$place%return")
	done
	stat_start 20 "--ret=$RET" "${defs[@]}"
	[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 60 jumped || fail "$how: no jumps come"
	run_case runs 60
	diff "$T/want" "$T/result" || fail "$how: other results"
	run_case goes 1
	stat_end
	run_case comes 1
	diff "$T/came" "$T/result" || fail "$how: who was away comes to other results"
	read -r entries returns <<<"$(totals)"
	[ "$entries" -gt 1000 ] || fail "$how: $entries entries"
	eq "$returns" "$entries" "$how: returns and misses against entries"
	run_case runs 60
	diff "$T/want" "$T/result" || fail "$how: other results afterwards"
	assert_untouched "$PID" "$T/before" loose
done
