#!/bin/bash
# SPDX-License-Identifier: MIT
# attach -> 20 probes -> hit -> detach, again and again, on a redis-server that
# is serving redis-benchmark: no client sees an error, nothing is left each time.
. tests/e2e/lib.sh
command -v redis-server >>/dev/null && command -v redis-benchmark >>/dev/null ||
	skip "there is no redis-server"
N=${LONG:+1000}
N=${N:-40}
SOCK=$T/redis.sock
redis-server --port 0 --unixsocket "$SOCK" --dir "$T" --save '' --appendonly no \
	--daemonize no >"$T/out" 2>&1 &
PID=$!
PIDS+=("$PID")
cli()
{
	redis-cli -s "$SOCK" "$@" 2>&1
}
pongs()
{
	[ "$(cli ping)" = PONG ]
}
within 20 pongs || fail "redis doesn't start"

load()
{
	while :; do
		redis-benchmark -s "$SOCK" -c 20 -n 200000 -r 1000 -t set,get,incr,lpush,lpop -q
	done
}
load >"$T/bench" 2>&1 &
LOAD=$!
PIDS+=("$LOAD")
trap 'kill -9 $(pgrep -P "$LOAD") 2>>/dev/null; cleanup' EXIT
busy()
{
	[ "$(cli info stats | tr -d '\r' | sed -n 's/^total_commands_processed://p')" -gt 20000 ]
}
within 30 busy || fail "no load"

# What it holds open but for sockets, which its clients open and close as we
# look: one that goes between its name and its link has an empty link here.
files_of()
{
	{ find "/proc/$1/fd" -type l -printf '%l\n' 2>>/dev/null || true; } |
		grep -v -e '^socket:' -e '^$' | sort
}

FUNCS=(processCommand call lookupKey dictFind addReply readQueryFromClient writeToClient
	setCommand getCommand processInputBuffer)
DEFS=()
for f in "${FUNCS[@]}"; do
	DEFS+=("p:e_$f $f \$arg1 \$stack0" "r:x_$f $f \$retval \$duration")
done
snapshot "$PID" loose >"$T/before"
files_of "$PID" >"$T/fds"
ADDED=0
for i in $(seq "$N"); do
	"$UKP" trace -p "$PID" -n 200 -o "$T/trace" "${DEFS[@]}" 2>"$T/err" ||
		fail "cycle $i: the trace ended with $?"
	figures "$T/err"
	eq "$(wc -l <"$T/trace")" 200 "cycle $i: lines"
	assert_untouched "$PID" "$T/before" loose
	files_of "$PID" >"$T/fds.now"
	diff "$T/fds" "$T/fds.now" || fail "cycle $i: other files are open"
	ADDED=$((ADDED + HITS))
done
pongs || fail "redis doesn't answer"
! grep -iE 'err|fail|closed|refused' "$T/bench" || fail "the clients saw errors"
kill -0 "$LOAD" || fail "the load ended"
"$UKP" latency -p "$PID" --for 1 processCommand lookupKey=ptr >"$T/lat" 2>&1 || fail "latency: $(cat "$T/lat")"
grep -q processCommand "$T/lat" || fail "no table"
assert_untouched "$PID" "$T/before" loose
echo "$N cycles, $ADDED hits, $(cli info stats | tr -d '\r' | grep total_commands)"
