# SPDX-License-Identifier: MIT
# What the end-to-end tests share.  A test sources this first; it runs in the
# tree's top, with a directory of its own ($T) that goes with it, as does every
# process that it started through here.
#
#	build NAME TAG CC FLAGS...	a program of tests/targets; sets BIN
#	start CMD ARG...		runs it; returns when it said "ready"; sets PID
#	say / await			a line to it / wait until it said that
#	snapshot / assert_untouched	how it was / it is so now, and verify is clean
#	trace_start ARG... / trace_end	a trace in the background: TRACE, $T/trace, $T/err
#	stat_start N ARG... / stat_end	a stat of N places at least: TRACE, $T/table, $T/err
#	kill_both, then cured		the broker and its client are killed; the target is cured
#	skip REASON			this test can't run here
#	without PART REASON		a part of it can't

set -eu -o pipefail
export LC_ALL=C

O=${O:-build}
UKP=$PWD/$O/ukprobe
BUILT=$PWD/$O/tests/e2e
LONG=${E2E_LONG:-}
T=$(mktemp -d /tmp/ukp-e2e-XXXXXX)
chmod 755 "$T"
# By this, processes of this test are told from those that have their numbers now.
export UKP_E2E=$T
PIDS=()
AS=()

NAME_OF_TEST=$(basename "$0" .sh)
SKIPS=0

ours()
{
	grep -q "^PPid:.$$\$" "/proc/$1/status" 2>>/dev/null ||
		grep -qzx "UKP_E2E=$T" "/proc/$1/environ" 2>>/dev/null
}

cleanup()
{
	local p status=$?

	set +e
	[ $status != 0 ] || [ $SKIPS != 0 ] || echo "ok $NAME_OF_TEST"
	exec 2>>/dev/null
	# The traces first: their brokers take the probes out.
	for p in "${PIDS[@]}"; do
		ours "$p" && kill -9 "$p"
	done
	wait
	rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

fail()
{
	echo "$*"
	echo "--- the trace said:"
	cat "$T/err" 2>>/dev/null || true
	exit 1
}

skip()
{
	without "$NAME_OF_TEST" "$*"
	exit 0
}

# A part of a test that can't run here.
without()
{
	echo "skipped $1: $2"
	SKIPS=1
}

eq()
{
	[ "$1" = "$2" ] || fail "$3: $1, expected $2"
}

# within SECONDS CMD...: until it succeeds.  Who names few seconds says that it
# comes soon; a machine that is busy gets PATIENCE all the same.
PATIENCE=${PATIENCE:-180}
within()
{
	local limit=$(($1 > PATIENCE ? $1 : PATIENCE))

	shift
	shortly "$limit" "$@"
}

# The same where it may as well not come: no longer than that.
shortly()
{
	local end=$((SECONDS + $1))

	shift

	until "$@"; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.02
	done
}

build()
{
	local name=$1 tag=$2 src=tests/targets/$1.c

	shift 2
	[ -e "$src" ] || src=tests/targets/$name.cc
	BIN=$BUILT/$name.$tag
	mkdir -p "$BUILT"
	[ "$BIN" -nt "$src" ] && return
	"$1" -D_GNU_SOURCE -O1 -g -o "$BIN.$$" "$src" "${@:2}" -pthread 2>"$T/build" || { cat "$T/build"; return 1; }
	mv "$BIN.$$" "$BIN"
}

user()
{
	[ "$(id -u)" = 0 ] || skip "needs root to become another user"
	AS=(setpriv --reuid nobody --regid nogroup --clear-groups --)
	# Who builds in a home directory need not let others in.
	cp "$UKP" "$T/ukprobe"
	UKP=$T/ukprobe
	BUILT=$T
}

spawn()
{
	mkfifo "$T/in.$1"
	eval "exec ${1}<>\"$T/in.$1\""
	: >"$T/out"
	"${AS[@]}" "${@:2}" <"$T/in.$1" >>"$T/out" 2>&1 &
	PID=$!
	PIDS+=("$PID")
}

start()
{
	rm -f "$T/in.9"
	spawn 9 "$@"
	await '^ready' 10
}

say()
{
	echo "$*" >&9
}

# It may end while we look: what can't be read isn't alive.
alive()
{
	grep -q '^State:.[^ZX]' "/proc/$1/status" 2>>/dev/null
}

said()
{
	grep -Eq -- "$1" "$T/out" || ! alive "$PID"
}

await()
{
	within "${2:-30}" said "$1" || fail "the target didn't say '$1': $(tail -3 "$T/out")"
	grep -Eq -- "$1" "$T/out" || fail "the target ended before '$1': $(tail -3 "$T/out")"
}

# The value behind a word that the target has printed last.
value()
{
	sed -n "s/^$1 //p" "$T/out" | tail -1
}

# The functions of a gdb's bt, from this one on to main.
backtrace_of()
{
	sed -n '/^#[0-9]/p' "$2" | sed 's/^#[0-9]* *//; s/^0x[0-9a-f]* in //; s/ .*//' |
		awk -v first="$1" '$0 == first { on = 1 } on { print } /^main$/ { exit }' | paste -sd' '
}

# Where memory lies with its rights and files; what a program's own growth
# changes is left out: sizes of heap and stack, and anonymous memory with
# "loose" (allocators that map while they work).
maps_of()
{
	awk -v loose="${2:-}" '
		$6 == "[heap]" || $6 == "[stack]" { print $6, $2; next }
		loose != "" && NF == 5 && $2 !~ /x/ { next }
		{ print $1, $2, $3, $6 }' "/proc/$1/maps"
}

snapshot()
{
	local f

	ls "/proc/$1/task" | wc -l
	maps_of "$1" "${2:-}"
	for f in "/proc/$1"/fd/*; do
		[ -n "${2:-}" ] || echo "${f##*/} $(readlink "$f" || true)"
	done
	grep -E '^(SigBlk|SigIgn|SigCgt|TracerPid|CapEff|Seccomp):' "/proc/$1/status"
	# Every thread's mask, but for those that come and go.
	[ -n "${2:-}" ] || masks_of "$1"
}

# A thread that was joined may still be on its way out: between its name in the
# list and its reading it can vanish.
masks_of()
{
	{ cat "/proc/$1"/task/*/status 2>>/dev/null || true; } | grep '^SigBlk' | sort
}

verified()
{
	"${AS[@]}" "$UKP" verify -p "$1" >"$T/verify" 2>&1
}

# pthread_join() returns before the kernel has taken the thread off its list.
as_many_threads()
{
	[ "$(ls "/proc/$1/task" | wc -l)" = "$(head -1 "$2")" ]
}

# assert_untouched PID SNAPSHOT-FILE [loose]
assert_untouched()
{
	verified "$1" || fail "verify: $(cat "$T/verify")"
	within 30 as_many_threads "$1" "$2" || fail "threads: $(ls "/proc/$1/task" | wc -l), before $(head -1 "$2")"
	snapshot "$1" "${3:-}" >"$T/now"
	diff "$2" "$T/now" >"$T/diff" || fail "the target has changed: $(cat "$T/diff")"
}

planted()
{
	[ "$("${AS[@]}" "$UKP" list -p "$1" 2>>/dev/null | wc -l)" -ge "$2" ] || ! alive "$TRACE"
}

# trace_start DEFS-COUNT ARG...
trace_start()
{
	local n=$1

	shift
	# The folder is ours, the file whoever traces writes.
	: >"$T/trace"
	chmod 666 "$T/trace"
	"${AS[@]}" "$UKP" trace -p "$PID" -o "$T/trace" "$@" 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 20 planted "$PID" "$n" || fail "nothing was planted"
	alive "$TRACE" || fail "the trace ended at once"
}

# Ctrl-C, and the figures of its summary: HITS, RECORDS, MISSES, WHY
trace_end()
{
	kill -INT "$TRACE"
	trace_wait
}

gone()
{
	! alive "$1"
}

trace_wait()
{
	STATUS=0
	within "${1:-20}" gone "$TRACE" || fail "the trace doesn't end"
	wait "$TRACE" || STATUS=$?
	figures "$T/err"
}

figures()
{
	local line

	line=$(grep '^ukprobe: .* hits' "$1") || fail "no summary: $(cat "$1")"
	read -r _ HITS _ RECORDS _ MISSES _ <<<"$line"
	WHY=${line#*misses}
	eq "$((RECORDS + MISSES))" "$HITS" "records + misses against hits"
}

broker_of()
{
	pgrep -f "^$UKP broker (--launch )?$1 " || true
}

stat_start()
{
	local n=$1

	shift
	"$UKP" stat -p "$PID" -o "$T/table" "$@" 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 20 planted "$PID" "$n" || fail "nothing was planted"
	alive "$TRACE" || fail "stat ended at once"
}

stat_end()
{
	kill -INT "$TRACE"
	STATUS=0
	within 20 gone "$TRACE" || fail "stat doesn't end"
	wait "$TRACE" || STATUS=$?
	eq "$STATUS" 0 "status of stat"
}

asleep()
{
	grep -q '^State:.T' "/proc/$1/status"
}

# At once: cure itself waits for a broker that is still on its way out.
cured()
{
	"$UKP" cure -p "$PID" >"$T/cure" 2>&1
}

# Not by its client, which would cure the target: that sleeps until it is killed, too.
kill_both()
{
	local broker

	broker=$(broker_of "$PID")
	kill -STOP "$TRACE"
	within 30 asleep "$TRACE" || fail "the client doesn't stop"
	kill -9 "$broker"
	within 30 gone "$broker" || fail "the broker doesn't die"
	kill -9 "$TRACE"
	wait "$TRACE" 2>/dev/null || true
}
