#!/bin/bash
# SPDX-License-Identifier: MIT
# perf record -g of a probed program, by frame pointers and by DWARF: under exit sites
# every sample has the true callers.  Slots and calls in place
# show stubs, to frame pointers in the place of the callers of what is probed, and
# end DWARF's way there.
. tests/e2e/lib.sh

command -v perf >>/dev/null || skip "there is no perf"
TRUE='p_inner p_middle p_middle p_outer main'

# sampled HOW: the callers in samples of p_inner, with how many there were of each
sampled()
{
	: >"$T/out"
	perf record -q -e cpu-clock:u -F 1000 --call-graph "$1" -p "$PID" -o "$T/perf" \
		--control "fifo:$T/perf.ctl,$T/perf.ack" -D -1 >"$T/perf.err" 2>&1 &
	PERF=$!
	PIDS+=("$PERF")
	told enable
	say 100
	await '^done'
	CALLS=$(value calls)
	told stop
	within 30 gone $PERF || fail "perf record doesn't end"
	wait $PERF || fail "perf record: $(tail -3 "$T/perf.err")"
	perf script -i "$T/perf" -F ip,sym 2>>/dev/null | awk '
		function one() { if (split(chain, f, " ") && f[1] == "p_inner") n[chain]++; chain = "" }
		!NF { one(); next }
		chain !~ / main$/ { chain = chain (chain == "" ? "" : " ") $2 }
		END { one(); for (c in n) print n[c], c }' | sort -rn >"$T/chains"
}

# perf has done so.
told()
{
	local answer

	echo "$1" >&7
	read -r -t "$PATIENCE" answer <&8 || fail "perf record: $(tail -3 "$T/perf.err")"
}

jumped()
{
	! "$UKP" list -p "$PID" | grep -Eq '%return.*ret=slot|on its way' || ! alive "$TRACE"
}

all_true()
{
	[ "$(awk -v t="$TRUE" '{ n = $1; sub(/^[0-9]* /, "") } $0 != t { bad += n } { all += n }
		END { print (all >= 20) + 0, bad + 0 }' "$T/chains")" = "1 0" ] || fail "$1: $(cat "$T/chains")"
}

export UKPROBES_OPTIMIZATION=1
perf record -q -e cpu-clock:u -g -o "$T/perf" true >"$T/perf.err" 2>&1 ||
	skip "perf can't sample by the clock here: $(head -1 "$T/perf.err")"
mkfifo "$T/perf.ctl" "$T/perf.ack"
exec 7<>"$T/perf.ctl" 8<>"$T/perf.ack"
build spins perf gcc -fno-omit-frame-pointer
start "$BIN"
for RET in exit call; do
	trace_start 3 "--ret=$RET" "r:p ${BIN##*/}:p_* \$retval"
	within 30 jumped || fail "$RET: no jumps come"
	ALL=0
	for by in fp dwarf,1024; do
		sampled $by
		ALL=$((ALL + CALLS))
		case $RET in
		exit) all_true "$by" ;;
		call) ! grep -qF "$TRUE" "$T/chains" || fail "$by: no stubs in $(cat "$T/chains")" ;;
		esac
	done
	trace_end
	eq "$HITS" "$ALL" "$RET: hits"
done
verified "$PID" || fail "verify: $(cat "$T/verify")"
