#!/bin/bash
# SPDX-License-Identifier: MIT
# Lines a second of CPU time that `ukprobe trace -o FILE` takes from the ring
# and writes; the target makes them one trap a line, so wall time is its own: by jumps
# it would make more than fit into the ring, and their number would never be reached.
set -e
O=${O:-build}
CALLS=${CALLS:-300000}
TIMEFORMAT='%U %S'
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkfifo "$tmp/in"
"$O/bench/target" <"$tmp/in" >"$tmp/out" &
pid=$!
exec 3>"$tmp/in"
{ time UKPROBES_OPTIMIZATION=0 "$O/ukprobe" trace -p $pid -n "$CALLS" -o "$tmp/trace" 'p work_mov $arg1' 2>"$tmp/err"; } 2>"$tmp/time" &
tracer=$!
# The first line comes when the target runs, so it may run when the probe is in.
while kill -0 $tracer 2>/dev/null && ! grep -q ukprobes-ctl /proc/$pid/maps; do sleep 0.05; done
sleep 0.3
echo "mov $CALLS" >&3
wait $tracer || { cat "$tmp/err"; exit 1; }
exec 3>&-
wait $pid
read -r user sys <"$tmp/time"
lines=$(grep -vc '^#' "$tmp/trace")
echo "$lines $user $sys" | awk '{ printf "trace -o FILE: %d lines, %.2f s of CPU: %.2f M lines a second\n", $1, $2 + $3, $1 / ($2 + $3) / 1e6 }'
sed 's/^/  /' "$tmp/err"
