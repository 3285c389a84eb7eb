#!/bin/bash
# SPDX-License-Identifier: MIT
# CPU time a request of an unmodified redis-server, with and without a counting
# probe on processCommand: QUADS quads of four times SECONDS_EACH, and as many
# blanks (bench/redis.py).  The whole takes about 2.7 seconds a quad.
#
# Server and clients take turns on one CPU: else how many requests one wake-up of
# the server serves, and so their cost, is left to chance.
set -eu
O=${O:-build}
ukprobe=$PWD/$O/ukprobe
QUADS=${QUADS:-100}
SECONDS_EACH=${SECONDS_EACH:-0.25}
cpu=$(taskset -pc $$ | sed 's/.*[ ,-]//')

for c in redis-server redis-benchmark redis-cli python3; do
	command -v $c >/dev/null || {
		echo "redis: skipped: $c is not installed"
		exit 0
	}
done
dir=$(mktemp -d)
server=
load=
cleanup() {
	trap - EXIT INT TERM
	for p in $load $server; do
		kill "$p" 2>/dev/null && wait "$p" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT TERM

die() {
	echo "redis: $*" >&2
	exit 1
}

taskset -c "$cpu" redis-server --port 0 --unixsocket "$dir/sock" --dir "$dir" --save '' --appendonly no --daemonize no \
	>"$dir/log" 2>&1 &
server=$!
until [ "$(redis-cli -s "$dir/sock" ping 2>/dev/null)" = PONG ]; do
	kill -0 $server 2>/dev/null || die "the server did not start: $(tail -n 1 "$dir/log")"
	sleep 0.05
done
taskset -c "$cpu" redis-benchmark -s "$dir/sock" -q -c 50 -n 2000000000 -t get >/dev/null 2>&1 &
load=$!
until redis-cli -s "$dir/sock" info commandstats | grep -q cmdstat_get; do
	kill -0 $load 2>/dev/null || die "redis-benchmark does not run"
	sleep 0.05
done
python3 bench/redis.py "$ukprobe" $server $load "$dir/sock" "$QUADS" "$SECONDS_EACH"
