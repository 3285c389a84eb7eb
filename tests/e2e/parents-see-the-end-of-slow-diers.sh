#!/bin/bash
# SPDX-License-Identifier: MIT
# A target that is killed while it is held, and is long in ending, as one that writes a
# core: its parent gets its end all the same, while a client stays.  Here it is the first
# process of a pid namespace, which waits for the end of all others.
. tests/e2e/lib.sh
[ -n "$LONG" ] || skip "the broker gives up a dying target after twenty seconds: E2E_LONG=1"
command -v strace >/dev/null || skip "there is no strace"
unshare --pid --fork true 2>>"$T/noise" || skip "no pid namespaces here"
build counter plain gcc
mkfifo "$T/in"
unshare --pid --fork "$BIN" 1 10 <>"$T/in" >"$T/out" 2>&1 &
PARENT=$!
PIDS+=("$PARENT")
within 20 grep -q '^ready' "$T/out" || fail "it doesn't start"
PID=$(pgrep -P "$PARENT")
PIDS+=("$PID")
# One whose parent doesn't wait for it keeps the first process from ending.
nsenter -t "$PID" -p sleep 1000 &
KEEPER=$!
PIDS+=("$KEEPER")
within 20 pgrep -P "$KEEPER" >"$T/kept"
kill -STOP "$KEEPER"

trace_start 1 'p work'
BROKER=$(broker_of "$PID")
kill -STOP "$TRACE"
# Each of its calls from the first on takes long: the second client's hold.
strace -qq -e trace=ptrace -e inject=ptrace:delay_exit=300000 -p "$BROKER" 2>"$T/strace" &
STRACE=$!
PIDS+=("$STRACE")
within 20 grep -q "^TracerPid:.$STRACE$" "/proc/$BROKER/status" || fail "strace doesn't attach"
"$UKP" stat -p "$PID" --for 0.1 'p work' >"$T/table" 2>"$T/err2" &
PIDS+=($!)
within 20 grep -q "^TracerPid:.$BROKER$" "/proc/$PID/status" || fail "it is not held"
kill -9 "$PID"
sleep 0.4
kill -9 "$STRACE"
{ wait "$STRACE" || true; } 2>>"$T/noise"
# It waits for the end, for a while, and is in its poll() again.
polls()
{
	[ "$(cut -d' ' -f1 "/proc/$BROKER/syscall")" = 7 ]
}
within 30 polls || fail "the broker doesn't give up"
sleep 0.1
within 30 polls || fail "the broker doesn't give up"
alive "$PARENT" || fail "the parent has its end before it has ended"
kill -CONT "$KEEPER"
shortly 10 gone "$PARENT" || fail "the parent doesn't get its end"
kill -CONT "$TRACE"
within 20 gone "$TRACE" || fail "the trace doesn't end"
