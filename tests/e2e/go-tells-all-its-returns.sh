#!/bin/bash
# SPDX-License-Identifier: MIT
# The returns of all functions of a Go program at once, its runtime's and packages'
# among them: results as without, and of what it counts itself each call is a return
# or a declared miss, to the unit, and so it is of all others but for entries that a growing stack repeats.
. tests/e2e/lib.sh
[ -n "$LONG" ] || skip "a Go program under probes on all of it: E2E_LONG=1"

ROUNDS=${ROUNDS:-10}

# The results of some rounds to a file; how often what was called until then to another.
rounds()
{
	local i

	: >"$T/out"
	for ((i = 0; i < ROUNDS; i++)); do
		say go
	done
	within 120 ended || fail "it said $(tail -1 "$T/out")"
	grep '^result' "$T/out" | sort | uniq -c >"$1"
	awk '$1 == "count" { n[$2] = $3 } END { for (f in n) print f, n[f] }' "$T/out" | sort >"$2"
}

ended()
{
	[ "$(grep -c '^done' "$T/out")" = "$ROUNDS" ] || ! alive "$PID"
}

# The functions whose returns are probed.
probed()
{
	"$UKP" list -p "$PID" | awk '/ ret=exit/ { sub(/\+0x.*/, "", $3); print $3 }' >"$T/probed"
}

# Of these: calls by the program's own count, and returns.
counted()
{
	awk -v probed="$T/probed" -v table="$T/table" '
		BEGIN {
			while ((getline f < probed) > 0) on[f] = 1
			while ((getline line < table) > 0) { split(line, w, " "); r[w[2]] = w[1] }
		}
		NR == FNR { before[$1] = $2; next }
		$1 in on { calls += $2 - before[$1]; returns += r[$1 "%return"] }
		END { print calls + 0, returns + 0 }' "$T/before" "$T/after"
}

# Of these: entries and returns.
paired()
{
	awk 'NR == FNR { on[$1] = 1; next }
		{ f = $2; way = sub(/%return$/, "", f); sub(/\+0x.*/, "", f) }
		f in on { n[way] += $1; if (way) r[f] += $1; else e[f] += $1 }
		END {
			for (f in r) if (r[f] > e[f]) print "more returns than entries:", f > "/dev/stderr"
			print n[0] + 0, n[1] + 0
		}' "$T/probed" "$T/table"
}

missed()
{
	awk '/calls without a return/ { n = $1 } END { print n + 0 }' "$T/table"
}

GO=$(command -v go || ls /usr/lib/go-1.*/bin/go 2>>/dev/null | tail -1) || true
[ -n "$GO" ] || skip "there is no Go compiler"
mkdir "$T/go"
cp tests/targets/calls.go "$T/go"
(cd "$T/go" && HOME=$T CGO_ENABLED=0 GO111MODULE=off GOCACHE=$BUILT/go-cache "$GO" build -o calls calls.go) \
	>"$T/build" 2>&1 || fail "go: $(cat "$T/build")"
GOGC=5 start "$T/go/calls"
rounds "$T/want" "$T/before"
eq "$(wc -l <"$T/want")" 1 "results that differ"

# Its own functions alone.
stat_start 10 'f calls:main.*%return'
probed
rounds "$T/got" "$T/after"
stat_end
diff "$T/want" "$T/got" || fail "main: other results"
read -r calls returns <<<"$(counted)"
[ "$calls" -gt $((ROUNDS * 2000)) ] || fail "main: $calls calls"
[ "$returns" -gt $((calls / 2)) ] || fail "main: $returns returns of $calls calls"
eq "$((returns + $(missed)))" "$calls" "main: returns and misses against calls"

# All that can be, by their entries and their returns.
mv "$T/after" "$T/before"
stat_start 1000 'f calls:*' 'f calls:*%return'
probed
rounds "$T/got" "$T/after"
stat_end
diff "$T/want" "$T/got" || fail "all: other results"
[ "$(wc -l <"$T/probed")" -gt 400 ] || fail "all: $(wc -l <"$T/probed") functions"
read -r calls returns <<<"$(counted)"
read -r entries all <<<"$(paired)"
# Who has grown its stack enters again.
again=$((entries - all - $(missed)))
[ $again -ge 0 ] && [ $again -le $((entries / 100)) ] ||
	fail "all: $entries entries, $all returns, $(missed) misses"
verified "$PID" || fail "verify: $(cat "$T/verify")"
rounds "$T/got" "$T/after"
diff "$T/want" "$T/got" || fail "other results afterwards"
