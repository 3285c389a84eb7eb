#!/bin/bash
# SPDX-License-Identifier: MIT
# What is done between the first interrupt and the last detach of each stop, as
# the tracer's system calls: a bound by the number of threads, which holds on
# any machine at any load, and no file is read but a few of /proc.
. tests/e2e/lib.sh
command -v strace >/dev/null || skip "strace is not installed"
build gaps dynamic gcc
FIXED=70 # calls of a stop, whatever it is for
EACH=12  # and for each thread

# Stops of a strace -f log: calls that do something, files opened.  Waiting is
# left out, and what a wait that takes long looks at.
stops()
{
	awk '
	{ pid = $1; call = $2; sub(/\(.*/, "", call) }
	/PTRACE_INTERRUPT/ && !(pid in on) { on[pid] = 1; n[pid] = files[pid] = last[pid] = 0 }
	!(pid in on) { next }
	last[pid] && !/PTRACE_DETACH/ {
		print last[pid], at[pid]
		delete on[pid]
		next
	}
	call ~ /^(waitid|rt_sigtimedwait|rt_sigprocmask|kill|getpid|read|close|---)$/ { next }
	call == "openat" && !/\/stat"/ { files[pid]++ }
	call == "openat" { next }
	{ n[pid]++ }
	/PTRACE_DETACH/ { last[pid] = n[pid]; at[pid] = files[pid] }' "$1"
}

for threads in 1 4 50; do
	start "$BIN" $threads
	snapshot "$PID" >"$T/before"
	strace -f -o "$T/strace" "$UKP" trace -p "$PID" --for 0.5 -o "$T/trace" \
		'p:e work' 'r:x work' >"$T/err" 2>&1 || fail "no trace under strace: $(cat "$T/err")"
	within 20 eval '[ -z "$(broker_of '"$PID"')" ]' || fail "the broker stays"
	stops "$T/strace" >"$T/stops"
	nr=$(wc -l <"$T/stops")
	[ "$nr" -ge 4 ] || fail "only $nr stops seen"
	read -r most files < <(sort -rn "$T/stops" | head -1)
	[ "$most" -ge $((4 * threads)) ] || fail "$most calls in the longest stop: they are not counted right"
	[ "$most" -le $((FIXED + EACH * threads)) ] ||
		fail "$threads threads: $most calls in one stop: $(cat "$T/stops")"
	files=$(awk '{ if ($2 > n) n = $2 } END { print n }' "$T/stops")
	[ "$files" -le 6 ] || fail "$files files are opened in one stop"
	echo "$threads threads: $nr stops, at most $most calls, $files files"
	assert_untouched "$PID" "$T/before"
	kill -9 "$PID"
done
