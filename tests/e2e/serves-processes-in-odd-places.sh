#!/bin/bash
# SPDX-License-Identifier: MIT
# A stopped process, one whose file was deleted or replaced, one in a root of its
# own, one under a seccomp filter, one denied code that it could write, one that gdb
# has visited: each is probed, and left as it was.
. tests/e2e/lib.sh

state()
{
	grep -q "^State:.$1" "/proc/$PID/status"
}

# served WHAT HITS: one round under a trace of work() counts them all
served()
{
	snapshot "$PID" loose >"$T/before"
	: >"$T/out"
	trace_start 2 'p:in work' 'r:back work'
	say go
	await '^done'
	trace_end
	eq "$HITS" "$2" "$1: hits"
	eq "$RECORDS" "$2" "$1: records"
	assert_untouched "$PID" "$T/before" loose
}

build counter dynamic gcc
COUNTER=$BIN

# --- stopped: it stays so, before, meanwhile and after ---------------------------
start "$COUNTER" 1 5
snapshot "$PID" >"$T/before"
kill -STOP "$PID"
within 10 state T
"$UKP" trace -p "$PID" --for 0.1 -o "$T/trace" 'p work' 2>"$T/err" || fail "stopped: $(cat "$T/err")"
figures "$T/err"
eq "$HITS" 0 "stopped: hits"
state T || fail "stopped: it runs"
assert_untouched "$PID" "$T/before"
kill -CONT "$PID"
served continued 10
trace_start 1 'p work'
kill -STOP "$PID"
within 10 state T
trace_end
state T || fail "stopped meanwhile: it runs"
verified "$PID" || fail "stopped meanwhile: $(cat "$T/verify")"
kill -CONT "$PID"
served 'continued again' 10

# --- its file is gone, or another one --------------------------------------------
# Only root is given a file that isn't there any more.
if [ "$(id -u)" = 0 ]; then
	cp "$COUNTER" "$T/mine"
	start "$T/mine" 1 5
	rm "$T/mine"
	served deleted 10
	cp "$(type -P true)" "$T/mine"
	served replaced 10
	trace_start 2 'p:in work' 'r:back work'
	rm "$T/mine"
	: >"$T/out"
	say go
	await '^done'
	trace_end
	eq "$HITS" 10 "replaced meanwhile: hits"
	verified "$PID" || fail "replaced meanwhile: $(cat "$T/verify")"
else
	without "a file that is gone" "needs root"
fi

# --- a debugger before, and in between ---------------------------------------------
if command -v gdb >>/dev/null; then
	start "$COUNTER" 1 5
	gdb -nx -q -batch -p "$PID" -ex 'break work' -ex 'delete' -ex detach >"$T/gdb" 2>&1 || fail "gdb: $(cat "$T/gdb")"
	served 'after gdb' 10
	snapshot "$PID" loose >"$T/before"
	trace_start 1 'p work'
	gdb -nx -q -batch -p "$PID" -ex bt -ex detach >"$T/gdb" 2>&1 || fail "gdb: $(cat "$T/gdb")"
	grep -q main "$T/gdb" || fail "gdb sees no main: $(cat "$T/gdb")"
	: >"$T/out"
	say go
	await '^done'
	trace_end
	eq "$HITS" 5 "gdb in between: hits"
	assert_untouched "$PID" "$T/before" loose
else
	without gdb "there is no gdb"
fi

if [ "$(id -u)" != 0 ]; then
	without "a root of its own" "needs root"
	without "a filter" "needs root"
	exit 0
fi
build counter static gcc -static
mkdir "$T/root"
cp "$BIN" "$T/root/counter"
start chroot "$T/root" /counter 1 5
served 'in a root of its own' 10

build confined dynamic gcc
start "$BIN"
# And a bad address, whose fault the agent takes without a system call.
trace_start 2 'p:in work +0($arg1)' 'r:back work'
for i in 1 2 3; do
	: >"$T/out"
	say go
	await '^done'
done
trace_end
eq "$HITS" 6 "under a filter: hits"
eq "$(grep -c '(fault)' "$T/trace")" 3 "under a filter: faults"
verified "$PID" || fail "under a filter: $(cat "$T/verify")"
: >"$T/out"
say go
await '^done'

status=0
"$BIN" mdwe </dev/null >"$T/mdwe" || status=$?
if [ $status = 77 ]; then
	without "code that can't be written" "the kernel has no PR_SET_MDWE"
	exit 0
fi
start "$BIN" mdwe
snapshot "$PID" >"$T/before"
trace_start 2 'p:in work +0($arg1)' 'r:back work'
say go
await '^done'
trace_end
eq "$HITS" 2 "code that can't be written: hits"
assert_untouched "$PID" "$T/before"
