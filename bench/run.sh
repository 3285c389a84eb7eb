#!/bin/sh
# SPDX-License-Identifier: MIT
# All of the bench, eight to ten minutes.  docs/bench.md says how each row is measured.
set -e
O=${O:-build}
UKPROBE=$PWD/$O/ukprobe
export UKPROBE

echo "$(uname -m), $(uname -r), $(nproc) CPUs, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
echo
# Breakpoints against breakpoints: without the jumps that would replace ours.
UKPROBES_OPTIMIZATION=0 "$O/bench/hits" "$O/bench/target"
echo
"$O/bench/library"
echo
"$O/bench/returns"
echo
"$O/bench/jump"
echo
"$O/bench/flat" "$O/bench/many.so"
echo
bench/peers.sh
echo
bench/redis.sh
echo
"$O/bench/stop_time"
echo
"$O/bench/ring"
bench/lines.sh
echo
bench/scale.sh
