#!/bin/bash
# SPDX-License-Identifier: MIT
# Workers that a server forks while it is probed, and theirs, work on and are not
# counted; at the detach they are cured as their master is, also when that has
# ended before, or when the broker was killed and the master is cured by hand.
# Others are left alone.
. tests/e2e/lib.sh

N=200

tell()
{
	: >"$T/out"
	say "$*"
	await '^done'
	[[ $1 = go ]] || WORKERS+=("$(value worker)")
}

go()
{
	tell go $N
	eq "$(value wrong)" 0 "$1: wrong"
	eq "$(value answers)" "$2" "$1: answers"
	eq "$(value work)" $N "$1: calls"
}

# Nothing of ours is in any of them, and their signals are the master's.
clean()
{
	local pid

	for pid in "${WORKERS[@]}"; do
		verified "$pid" || fail "$1: worker $pid: $(cat "$T/verify")"
		! grep -q memfd:ukprobes "/proc/$pid/maps" || fail "$1: worker $pid has mappings of ours"
		grep -E '^Sig(Blk|Ign|Cgt):' "/proc/$pid/status" >"$T/signals"
		cmp -s "$T/signals" "$T/own" || fail "$1: worker $pid: $(diff "$T/own" "$T/signals")"
	done
}

begin()
{
	WORKERS=()
	start "$BIN"
	grep -E '^Sig(Blk|Ign|Cgt):' "/proc/$PID/status" >"$T/own"
	tell fork
	trace_start 2 'p work' 'r work'
	tell fork
	tell fork
	tell deep
	PIDS+=("${WORKERS[@]}")
}

build forks dynamic gcc
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	begin
	go probed 3
	# Another client comes and goes, with memory that these workers don't have.
	"$UKP" trace -p "$PID" -n 1 --for 0.05 'p main' >"$T/second" 2>&1 || fail "second: $(cat "$T/second")"
	go 'probed, a second client gone' 3
	trace_end
	eq "$HITS" $((4 * N)) hits
	eq "$RECORDS" "$HITS" records
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	clean 'after the detach'
	go 'after the detach' 3
done

begin
kill -9 "$PID"
trace_wait
clean 'the master was killed'

begin
kill_both
within 30 cured || fail "cure: $(cat "$T/cure")"
verified "$PID" || fail "verify: $(cat "$T/verify")"
clean 'cured by hand'
go 'cured by hand' 3

# Another process, with probes of its own at the same addresses, is no child: it is
# not even stopped for it.
if ! command -v strace >>/dev/null || ! setarch -R true 2>>/dev/null; then
	without "a process at the same addresses" "there is no strace, or no setarch -R"
	exit 0
fi
start setarch -R "$BIN"
OTHER=$PID
trace_start 1 'p work'
OTHERS=$TRACE
exec 8>&9
start setarch -R "$BIN"
trace_start 1 'p work'
for pid in "$OTHER" "$PID"; do
	sed -n 's/ .*ukprobes-ctl.*//p' "/proc/$pid/maps"
done | sort | uniq -d | grep -q . || fail "they have their areas at different addresses"
kill_both
strace -o /dev/null -p "$OTHER" 2>"$T/strace.err" &
STRACE=$!
PIDS+=("$STRACE")
within 10 grep -q attached "$T/strace.err"
"$UKP" cure -p "$PID" >"$T/cure" 2>&1 || fail "beside another: cure: $(cat "$T/cure")"
verified "$PID" || fail "beside another: verify: $(cat "$T/verify")"
kill "$STRACE"
wait "$STRACE" || true
kill -INT "$OTHERS"
wait "$OTHERS" || fail "the other trace: $?"
