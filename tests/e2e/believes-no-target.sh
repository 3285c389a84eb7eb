#!/bin/bash
# SPDX-License-Identifier: MIT
# A target that writes over the memory of its probes gets no absurd figure
# printed: it is told that the channel is damaged, and all is taken out.
. tests/e2e/lib.sh
build vandal dynamic gcc -Isrc
start "$BIN"
snapshot "$PID" loose >"$T/before"

tell()
{
	: >"$T/out"
	say "$*"
	await "^${1}$"
}

# told WHAT: the trace, latency or stat that runs ends so, and leaves nothing
told()
{
	local status=0

	kill -INT "$TRACE"
	within 20 gone "$TRACE" || fail "$1: it doesn't end"
	wait "$TRACE" || status=$?
	eq "$status" 1 "$1: status"
	grep -q "^ukprobe: the channel is damaged: process $PID" "$T/err" || fail "$1: it isn't told"
	! grep -qE '[0-9]{13}' "$T/err" "$T/trace" || fail "$1: absurd: $(cat "$T/trace")"
	assert_untouched "$PID" "$T/before" loose
}

for byte in 0xff 0x7f 0x01; do
	trace_start 1 'p work'
	tell go
	within 20 eval '[ "$(wc -l <"$T/trace")" -eq 10 ]' || fail "the records before don't come"
	tell counts $byte
	told "trace, counts $byte"

	for cmd in latency stat; do
		def='p work'
		[ $cmd = stat ] || def=work
		"$UKP" $cmd -p "$PID" -o "$T/trace" "$def" 2>"$T/err" &
		TRACE=$!
		PIDS+=("$TRACE")
		within 20 planted "$PID" 1 || fail "$cmd: nothing was planted"
		tell go
		tell counts $byte
		told "$cmd, counts $byte"
	done
done

# In the rings, over records that nobody has read yet.
for byte in 0xff 0x55 0x5a; do
	trace_start 1 'p work'
	kill -STOP "$TRACE"
	within 10 grep -q '^State:.T' "/proc/$TRACE/status"
	tell go
	tell records $byte
	kill -CONT "$TRACE"
	told "records $byte"
done
