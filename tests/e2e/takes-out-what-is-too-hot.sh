#!/bin/bash
# SPDX-License-Identifier: MIT
# With a budget, a probe that takes more of the program's time is taken out and
# told; the one beside it stays, and what was counted stays, too.
. tests/e2e/lib.sh

# The hot one is out, and the cool one in.
only_cool()
{
	"$UKP" list -p "$PID" >"$T/list" 2>&1 && ! grep -q ' hot+' "$T/list" && grep -q ' cool+' "$T/list"
}

# told WHAT: of the hot one alone, once
told()
{
	within 10 grep -q '^ukprobe: taken out: hot+0x0.* hits a second take about .* %' "$T/err" ||
		fail "$1: that it is out isn't told"
	eq "$(grep -c '^ukprobe: taken out' "$T/err")" 1 "$1: how often"
}

build hot dynamic gcc
start "$BIN"
snapshot "$PID" >"$T/before"

for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	stat_start 1 --max-overhead 5% 'p hot' 'p cool'
	within 20 only_cool || fail "stat: $(cat "$T/list")"
	told stat
	alive "$TRACE" || fail "stat has ended"
	stat_end
	grep -Eq '^ *[1-9][0-9]* .*hot' "$T/table" || fail "stat: $(cat "$T/table")"
	assert_untouched "$PID" "$T/before"
done

# Calls and returns: in the base form, for a time that is written in no file.
UKPROBES_OPTIMIZATION=0 "$UKP" latency -p "$PID" --json --max-overhead 5 -o "$T/json" hot cool 2>"$T/err" &
TRACE=$!
PIDS+=("$TRACE")
within 20 planted "$PID" 1 || fail "latency: nothing was planted"
within 20 only_cool || fail "latency: $(cat "$T/list")"
kill -INT "$TRACE"
wait "$TRACE" || fail "latency: $?: $(cat "$T/err")"
told latency
assert_untouched "$PID" "$T/before"

for share in 0 101 -1 x '5 %' ''; do
	! "$UKP" trace -p "$PID" --max-overhead "$share" 'p cool' 2>"$T/err" || fail "'$share' is taken"
	grep -q 'max-overhead takes percent' "$T/err" || fail "'$share': no reason"
done
