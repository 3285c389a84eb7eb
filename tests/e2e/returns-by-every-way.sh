#!/bin/bash
# SPDX-License-Identifier: MIT
# However a probed call ends (exceptions, longjmp, the end of its thread) and on
# whatever stack it runs (coroutines, also in turns by several threads, vfork's
# child): the program's results are those without probes, and hits = calls, by each
# way in which returns are caught.
. tests/e2e/lib.sh

CASES='empties threads exceptions jumps twice walks contexts contexts-move switches switches-move abandons copies forks'
TIMES=60

run_times()
{
	: >"$T/out"
	say "$1 $2"
	await "^done $1\$" 60
}

run_case()
{
	run_times "$1" "$TIMES"
}

# Of all cases: their results go to a file, how many calls that was to ALL.
pass()
{
	local c

	ALL=0
	: >"$1"
	for c in $CASES; do
		run_case "$c"
		grep '^result' "$T/out" >>"$1"
		ALL=$((ALL + $(value calls)))
	done
}

# cases WHAT: all of them in one process, with probes on all functions
cases()
{
	start "${ENV[@]}" "$BIN"
	pass "$T/without"
	snapshot "$PID" loose >"$T/before"
	trace_start 15 "--ret=$RET" "r:w ${BIN##*/}:w_* \$retval"
	[ "$UKPROBES_OPTIMIZATION" = 0 ] || within 30 jumped || fail "$1: no jumps come"
	pass "$T/with"
	trace_end
	eq "$(grep -c '<- w_empty) ' "$T/trace")" "$TIMES" "$1: returns of what is a return only"
	diff "$T/without" "$T/with" || fail "$1: other results"
	eq "$HITS" "$ALL" "$1: hits"
	pass "$T/with"
	diff "$T/without" "$T/with" || fail "$1: other results afterwards"
	assert_untouched "$PID" "$T/before" loose
	away "$1"
	assert_untouched "$PID" "$T/before" loose
}

# Whose stack is copied away when we leave: the stubs there are return addresses again.
away()
{
	run_times goes 1
	run_times comes 1
	grep '^result comes' "$T/out" >"$T/without"
	trace_start 15 "--ret=$RET" "r:w ${BIN##*/}:w_* \$retval"
	run_times goes 1
	trace_end
	run_times comes 1
	grep '^result comes' "$T/out" | diff "$T/without" - || fail "$1: who was away comes to other results"
}

jumped()
{
	[ "$("$UKP" list -p "$PID" | grep -c OPTIMIZED)" -ge 10 ]
}

export UKPROBES_OPTIMIZATION
LLVM=$(ls /usr/lib/x86_64-linux-gnu/libunwind.so.1 2>>/dev/null || true)
build ways cc g++
for how in '0 auto' '0 slot' '1 auto' '1 exit' '1 call' '1 slot' '0 slot llvm' '1 call llvm'; do
	read -r UKPROBES_OPTIMIZATION RET unwinder <<<"$how"
	ENV=()
	if [ -n "$unwinder" ]; then
		[ -n "$LLVM" ] || { without "LLVM's unwinder" "it is not there"; break; }
		ENV=(env "LD_PRELOAD=$LLVM")
		# libc cancels threads by libgcc's, whatever the program has.
		CASES=${CASES/threads/switches-move}
	fi
	cases "$how"
done
