#!/bin/bash
# SPDX-License-Identifier: MIT
# CPU time a request of an unmodified redis-server, with and without a counting
# probe on processCommand: PAIRS interleaved pairs, which of the two comes first
# alternates; each the least of SLICES runs of N requests.  The mean difference and
# its 95 % confidence interval.
#
# Server and clients take turns on one CPU: else how many requests one wake-up of
# the server serves, and so their cost, is left to chance.
set -eu
O=${O:-build}
ukprobe=$PWD/$O/ukprobe
PAIRS=${PAIRS:-20}
SLICES=${SLICES:-5}
N=${N:-20000}
cpu=$(taskset -pc $$ | sed 's/.*[ ,-]//')

for c in redis-server redis-benchmark redis-cli; do
	command -v $c >/dev/null || {
		echo "redis: skipped: $c is not installed (package redis-server)"
		exit 0
	}
done
dir=$(mktemp -d)
server=
stat=
cleanup() {
	trap - EXIT INT TERM
	for p in $stat $server; do
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
ask() { redis-cli -s "$dir/sock" "$@" 2>/dev/null; }

taskset -c "$cpu" redis-server --port 0 --unixsocket "$dir/sock" --dir "$dir" --save '' --appendonly no --daemonize no \
	>"$dir/log" 2>&1 &
server=$!
until [ "$(ask ping)" = PONG ]; do
	kill -0 $server 2>/dev/null || die "the server did not start: $(tail -n 1 "$dir/log")"
	sleep 0.05
done

# The server's CPU nanoseconds so far, all threads.
cpu() { cat /proc/$server/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'; }

# Nanoseconds a request.
slice() {
	local from to
	for _ in $(seq "$SLICES"); do
		from=$(cpu)
		taskset -c "$cpu" redis-benchmark -s "$dir/sock" -q -c 50 -n "$N" -t get >/dev/null 2>&1 ||
			die "redis-benchmark failed"
		to=$(cpu)
		echo $(((to - from) / N))
	done | sort -n | head -n 1
}

probed() {
	"$ukprobe" stat -p $server --json 'p processCommand' >"$dir/stat" 2>"$dir/err" &
	stat=$!
	until "$ukprobe" list -p $server 2>/dev/null | grep -q 'processCommand.*\[OPTIMIZED\]'; do
		kill -0 $stat 2>/dev/null || die "$(cat "$dir/err")"
		sleep 0.02
	done
	with=$(slice)
	kill -INT $stat
	wait $stat || true
	stat=
	hits=$(grep -o '"hits": *[0-9]*' "$dir/stat" | grep -o '[0-9]*$' | sort -n | tail -n 1)
	[ "${hits:-0}" -ge $((SLICES * N)) ] || die "${hits:-no} hits of $((SLICES * N)) requests"
}

slice >/dev/null
for i in $(seq "$PAIRS"); do
	if [ $((i % 2)) -eq 0 ]; then
		without=$(slice)
		probed
	else
		probed
		without=$(slice)
	fi
	echo "$without $with"
done | awk -v n="$SLICES times $N" '
	{ a += $1; d = 100 * ($2 - $1) / $1; s += d; q += d * d; k++ }
	END {
		if (k < 2)
			exit 1
		mean = s / k
		sd = sqrt((q - k * mean * mean) / (k - 1))
		# Of the t distribution; 2.093 for 20 pairs.
		t = k > 30 ? 1.96 : 1.96 + 2.4 / (k - 1) + 3 / ((k - 1) * (k - 1))
		printf "redis, CPU time a request: %.0f ns; a counting probe on processCommand: ", a / k
		printf "%+.2f %% (95 %%: %+.2f to %+.2f; %d pairs of %s requests; aim: within 1)\n", \
			mean, mean - t * sd / sqrt(k), mean + t * sd / sqrt(k), k, n
	}'
