#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that sums up its own code finds the breakpoint, which nobody hides, and its
# old sum behind the detach.  A kernel's uprobe that comes to a place of ours later has
# the hits; whichever goes first, the program's code is its own in the end.
. tests/e2e/lib.sh
export UKPROBES_OPTIMIZATION=0
build sums plain gcc -no-pie
CALLS=0
# sum: of one round, whose calls must be right
sum()
{
	: >"$T/out"
	say go
	await '^calls'
	CALLS=$((CALLS + 100))
	[ "$(value calls)" = "$CALLS" ] || fail "calls: $(value calls), expected $CALLS"
	SUM=$(value sum)
}

start "$BIN"
snapshot "$PID" >"$T/before"
sum
own=$SUM
stat_start 1 'p probed'
sum
[ "$SUM" != "$own" ] || fail "the sum under a breakpoint is the same"
stat_end
eq "$(awk '/probed/ { print $1 }' "$T/table")" 100 "hits"
sum
eq "$SUM" "$own" "the sum behind the detach"
assert_untouched "$PID" "$T/before"

[ -r /sys/bus/event_source/devices/uprobe/type ] && [ "$(id -u)" = 0 ] || skip "this kernel has no uprobes for perf"
OFFSET=$(objdump -d --start-address="0x$(nm "$BIN" | awk '$3 == "probed" { print $1 }')" -F "$BIN" |
	sed -n 's/.*<probed> (File Offset: 0x\([0-9a-f]*\)):.*/\1/p' | head -1)

uprobe_says()
{
	grep -q "^$1" "$T/uprobe" || ! alive "$UPROBE"
}

uprobe_start()
{
	mkfifo "$T/stop.$1"
	python3 tests/e2e/uprobe.py "$PID" "$BIN" "$OFFSET" <"$T/stop.$1" >"$T/uprobe" 2>&1 &
	UPROBE=$!
	PIDS+=("$UPROBE")
	exec 7>"$T/stop.$1"
	within 20 uprobe_says set || fail "no uprobe"
	grep -q ^set "$T/uprobe" || skip "no uprobe: $(cat "$T/uprobe")"
}

uprobe_end()
{
	exec 7>&-
	wait "$UPROBE" || fail "uprobe: $(cat "$T/uprobe")"
	COUNT=$(sed -n 's/^count //p' "$T/uprobe")
}

for first in ours theirs; do
	stat_start 1 'p probed'
	sum
	uprobe_start "$first"
	sum
	if [ $first = ours ]; then
		stat_end
		sum
		uprobe_end
	else
		uprobe_end
		sum
		stat_end
	fi
	[ "$COUNT" -ge 100 ] || fail "$first first: the uprobe has counted $COUNT"
	eq "$(awk '/probed/ { print $1 }' "$T/table")" 100 "$first first: hits before the uprobe"
	sum
	eq "$SUM" "$own" "$first first: the sum in the end"
	# The kernel keeps a mapping of its own.
	verified "$PID" || fail "$first first: verify: $(cat "$T/verify")"
done
say end
