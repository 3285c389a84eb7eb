#!/bin/bash
# SPDX-License-Identifier: MIT
# How long a target stands still for an attach, its probes and the detach, as its
# own threads see it.  Printed, not judged: on a busy machine the scheduler's
# gaps are longer.
. tests/e2e/lib.sh
N=${LONG:+100}
N=${N:-10}
build gaps dynamic gcc

gap()
{
	: >"$T/out"
	say "$1"
	await '^done'
	value gap
}

figures_of()
{
	sort -n "$1" | awk '{ v[NR] = $1 } END { printf "median %d us, worst %d us", v[int((NR + 1) / 2)], v[NR] }'
}

for threads in 1 50; do
	start "$BIN" $threads
	snapshot "$PID" >"$T/before"
	rm -f "$T"/gaps.*
	for i in $(seq "$N"); do
		gap x >>"$T/none"
		sleep 0.3
		gap x >>"$T/gaps.idle"
		trace_start 2 'p:e work' 'r:x work'
		gap x >>"$T/gaps.attach"
		trace_end
		gap x >>"$T/gaps.detach"
		eq "$HITS" 2 hits
	done
	assert_untouched "$PID" "$T/before"
	for what in idle attach detach; do
		echo "$threads threads, $what: $(figures_of "$T/gaps.$what")"
	done
	kill -9 "$PID"
done
