#!/bin/bash
# SPDX-License-Identifier: MIT
# The same function traced by peers that Debian has and by us, each in a process
# of its own, in ROUNDS interleaved rounds: nanoseconds of a call over an
# untraced one.  What isn't installed is skipped.  The kernel's uprobe is a row of
# bench/hits, which measures the breakpoints.
set -u
O=${O:-build}
ROUNDS=${ROUNDS:-7}
ukprobe=$PWD/$O/ukprobe
dir=$(mktemp -d)
daemon=
cleanup() {
	trap - EXIT INT TERM
	[ -n "$daemon" ] && kill "$daemon" 2>/dev/null && tail --pid="$daemon" -f /dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT TERM

# What has the tracepoint or calls into uftrace is not what we probe.
build() { # NAME FLAG...
	"${CC:-cc}" -std=gnu11 -O2 -g -I. -o "$dir/$1" bench/peer.c "${@:2}" 2>"$dir/log"
}
build plain || {
	cat "$dir/log"
	exit 1
}
rows=(stat trace latency)
what_stat='ukprobe stat, entry counted'
what_trace='ukprobe trace, entry, a record with one argument'
what_latency='ukprobe latency, entry and return'
run_stat() { "$ukprobe" stat -o "$dir/out" 'p peer_work' -- "$dir/plain" jump; }
run_trace() { "$ukprobe" trace -o "$dir/out" 'p peer_work $arg1' -- "$dir/plain" jump; }
run_latency() { "$ukprobe" latency -o "$dir/out" peer_work -- "$dir/plain" jump; }

if command -v uftrace >/dev/null && build pg -pg -mfentry; then
	rows+=(uftrace)
	what_uftrace='uftrace record, entry and return'
	run_uftrace() { uftrace record -d "$dir/uftrace" --no-libcall --no-event "$dir/pg"; rm -rf "$dir/uftrace"; }
else
	echo "uftrace: skipped: not installed"
fi

# With a session daemon for as long as we run.
lttng_ready() {
	command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null || return
	build lttng -DPEER_LTTNG -llttng-ust -llttng-ust-common -ldl || return
	pgrep -x lttng-sessiond >/dev/null && return 1 # root's would be the system's
	lttng-sessiond --no-kernel --daemonize --pidfile="$dir/pid" >/dev/null 2>&1 || return
	daemon=$(cat "$dir/pid")
}
if lttng_ready; then
	rows+=(lttng)
	what_lttng='LTTng-UST tracepoint, a record with one argument'
	run_lttng() {
		{
			lttng create bench --output="$dir/lttng-out"
			lttng enable-channel -u -s bench c --subbuf-size=4M --num-subbuf=8
			lttng enable-event -u -s bench -c c ukp_bench:hit
			lttng start bench
		} >/dev/null 2>&1
		"$dir/lttng"
		lttng destroy bench >/dev/null 2>&1
		rm -rf "$dir/lttng-out"
	}
else
	echo "lttng-ust: skipped: not installed (liblttng-ust-dev, lttng-tools), or its daemon runs already"
fi

for _ in $(seq "$ROUNDS"); do
	for r in "${rows[@]}"; do
		"run_$r" 2>"$dir/err" | awk '/^PEER/ { print $2 }' >>"$dir/$r.ns"
	done
done
bad=0
printf '%-52s %8s\n' "one function, over an untraced call, medians of $ROUNDS" ns
for r in "${rows[@]}"; do
	what=what_$r
	n=$(wc -l <"$dir/$r.ns")
	[ "$n" -eq "$ROUNDS" ] || {
		echo "$r: $n rounds of $ROUNDS: $(tail -n 1 "$dir/err")" >&2
		bad=1
	}
	[ "$n" -eq 0 ] || printf '%-52s %8.1f\n' "${!what}" "$(sort -n "$dir/$r.ns" | sed -n "$(((n + 1) / 2))p")"
done
exit $bad
