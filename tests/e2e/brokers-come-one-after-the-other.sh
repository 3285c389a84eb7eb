#!/bin/bash
# SPDX-License-Identifier: MIT
# Four users come and go at once, so that brokers end and begin all the time: there is
# never more than one, nobody is refused, and nothing is left.
. tests/e2e/lib.sh
build counter plain gcc
start "$BIN" 2 1000
snapshot "$PID" >"$T/before"
N=${LONG:+200}
N=${N:-15}
come_and_go()
{
	local i

	for i in $(seq "$N"); do
		"$UKP" stat -p "$PID" --for 0.00"$(((i * 7 + $1 * 3) % 9 + 1))" 'p work' >"$T/table.$1" 2>"$T/err.$1" || {
			echo "round $i: $? $(cat "$T/err.$1")" >"$T/bad.$1"
			return 1
		}
	done
}
USERS=()
for k in 1 2 3 4; do
	come_and_go "$k" &
	USERS+=($!)
done
for p in "${USERS[@]}"; do
	wait "$p" || fail "$(cat "$T"/bad.*)"
done
assert_untouched "$PID" "$T/before"

# One that is slow to end takes nothing away from the next one.
command -v strace >/dev/null || skip "there is no strace"
stat_start 1 'p work'
BROKER=$(broker_of "$PID")
strace -qq -e trace=unlink -e inject=unlink:delay_enter=500000:when=3+ -p "$BROKER" 2>"$T/strace" &
STRACE=$!
PIDS+=("$STRACE")
traced()
{
	grep -q "^TracerPid:.$STRACE\$" "/proc/$BROKER/status"
}
within 20 traced || fail "strace doesn't come"
stat_end
stat_start 1 'p work'
within 20 gone "$BROKER" || fail "the first broker doesn't end"
eq "$("$UKP" list -p "$PID" | wc -l)" 1 "probes, when the first broker has ended"
stat_end
assert_untouched "$PID" "$T/before"
