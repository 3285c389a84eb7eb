#!/bin/bash
# SPDX-License-Identifier: MIT
# A Go program with all that can be probed in it under probes, by its entry, each of
# its instructions and its returns: what its runtime may run with all signals blocked
# is refused, no jump stands in its code, and no result is wrong.  With C among it
# (cgo) and stripped, too.
. tests/e2e/lib.sh
[ -n "$LONG" ] || skip "half a minute, most of it the compiler's: E2E_LONG=1"

# rounds TITLE MUCH
rounds()
{
	local i

	for i in 1 2; do
		: >"$T/out"
		say "$2"
		await '^wrong'
		eq "$(value wrong)" "0 signals true" "$1, round $i"
	done
}

GO=$(command -v go || ls /usr/lib/go-1.*/bin/go 2>>/dev/null | tail -1) || true
[ -n "$GO" ] || skip "there is no Go compiler"
mkdir "$T/go"
cp tests/targets/everything.go "$T/go"
for how in 0 1 stripped; do
	flags=()
	[ $how != stripped ] || flags=(-ldflags '-s -w')
	sed 's/^import ($/import "C"\n&/' <tests/targets/everything.go >"$T/go/everything.go"
	[ $how = 1 ] || cp tests/targets/everything.go "$T/go"
	(cd "$T/go" && HOME=$T CGO_ENABLED=${how/stripped/0} GO111MODULE=off GOCACHE=$BUILT/go-cache \
		"$GO" build "${flags[@]}" -o everything everything.go) >"$T/build" 2>&1 || fail "go: $(cat "$T/build")"
	start "$T/go/everything"
	if [ $how = stripped ]; then
		at=$(objdump -h "$T/go/everything" | awk '$2 == ".text" { print "0x" $4 }')
		status=0
		"$UKP" trace -p "$PID" --for 20 "p $at" >"$T/trace" 2>"$T/err" || status=$?
		eq "$status" 1 "stripped: status"
		grep -q 'it has no name' "$T/err" || fail "stripped: no reason"
		rounds stripped 20
		break
	fi
	for def in 'f everything:*' 'p everything:*+*' 'f everything:*%return'; do
		much=20
		[ "$def" = "${def%+*}" ] || much=2
		stat_start 100 "$def"
		rounds "cgo $how, $def" $much
		! "$UKP" list -p "$PID" | grep -q OPTIMIZED || fail "a jump in Go's code"
		grep -q "places are not probed: Go's runtime" "$T/err" || fail "no reason"
		stat_end
		[ "$(awk '/main\.leaf/ { print $1 }' "$T/table" | head -1)" -gt 100 ] || fail "no hits"
		verified "$PID" || fail "verify: $(cat "$T/verify")"
		rounds "cgo $how, after $def" $much
	done
done
