#!/bin/bash
# SPDX-License-Identifier: MIT
# Returns in a Go program, whose goroutines' stacks grow and whose collector knows
# all return addresses: exit sites catch them, and slots are refused.
. tests/e2e/lib.sh
[ -n "$LONG" ] || skip "half a minute, most of it the compiler's: E2E_LONG=1"

# asked: a round, and what it has computed
asked()
{
	: >"$T/out"
	say round
	await '^sum '
	value sum
}

by_exit()
{
	[ "$("$UKP" list -p "$PID" | grep -c ' ret=exit (')" = "$1" ]
}

GO=$(command -v go || ls /usr/lib/go-1.*/bin/go 2>>/dev/null | tail -1) || true
[ -n "$GO" ] || skip "there is no Go compiler"
mkdir "$T/go"
cp tests/targets/returns.go "$T/go"
(cd "$T/go" && HOME=$T GO111MODULE=off GOCACHE=$BUILT/go-cache "$GO" build -o returns returns.go) >"$T/build" 2>&1 ||
	fail "go: $(cat "$T/build")"
GOGC=5 start "$T/go/returns"
sum=$(asked)
status=0
"$UKP" trace -p "$PID" --ret=slot --for 20 'r main.add' >"$T/trace" 2>"$T/err" || status=$?
eq "$status" 1 "by slots: status"
grep -q 'Go checks and moves return addresses' "$T/err" || fail "by slots: no reason"
trace_start 3 'r:a main.add $retval:s64' 'r:t main.tree' 'p:p main.add'
by_exit 2 || fail "$("$UKP" list -p "$PID")"
for i in 1 2 3 4 5; do
	eq "$(asked)" "$sum" "round $i"
done
trace_end
eq "$(grep -c ': a: ' "$T/trace") $(grep -c ': p: ' "$T/trace")" "500 500" "add"
eq "$(sed -n 's/.*: a: .*arg1=//p' "$T/trace" | awk '{ n += $1 } END { print n }')" $((5 * 14950)) \
	"what add returned"
# Each call has a return or a reason: frames move when a stack grows.
eq "$HITS" $((5 * (100 + 100 + 8 * 301))) "hits"
eq "$(asked)" "$sum" "afterwards"
