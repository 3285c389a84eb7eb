#!/bin/bash
# SPDX-License-Identifier: MIT
# The main job on a real program: a redis-server that knows nothing of us, under
# load, watched and left as it was.  Everything is private to a temporary folder.
set -u
cd "$(dirname "$0")/.."
ukprobe=${O:-build}/ukprobe
dir=$(mktemp -d)
server=
load=

cleanup() {
	trap - EXIT INT TERM
	[ -n "$load" ] && kill "$load" 2>/dev/null && wait "$load" 2>/dev/null
	[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
	printf '$ ukprobe'
	printf " %q" "$@" | sed "s/\\\\//g"
	echo
	"$ukprobe" "$@"
}

redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$dir" --save '' --appendonly no \
	--daemonize no >"$dir/log" 2>&1 &
server=$!
for _ in $(seq 100); do
	[ "$(redis-cli -s "$dir/redis.sock" ping 2>/dev/null)" = PONG ] && break
	sleep 0.05
done
[ "$(redis-cli -s "$dir/redis.sock" ping 2>/dev/null)" = PONG ] || {
	echo "demo: redis-server did not start:" >&2
	cat "$dir/log" >&2
	exit 1
}
# A part of the keys that it will ask for.
redis-benchmark -s "$dir/redis.sock" -q -c 8 -n 100000 -r 100000 -t set >/dev/null 2>&1
redis-benchmark -s "$dir/redis.sock" -q -c 8 -n 100000000 -r 100000 -t get >/dev/null 2>&1 &
load=$!

say "redis-server $server, unmodified, under redis-benchmark"

say "(a) ten returns of a function that returns a pointer"
run trace -p "$server" -n 10 'r:lookup lookupKey key=+8($arg2):x64 obj=$retval took=$duration' || exit 1

say "(b) latencies, aggregated inside the server for three seconds"
run latency -p "$server" --for 3 processCommand lookupKey=ptr || exit 1

say "(c) nothing is left"
run verify -p "$server" || exit 1
[ "$(redis-cli -s "$dir/redis.sock" ping)" = PONG ] && echo "redis-server still answers: PONG"
