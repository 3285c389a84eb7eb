#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh PROGRAM...: runs each test program and script with a time limit, one
# line each, and ends with the totals.  A cmocka program counts its tests; a
# script counts its own "ok", "FAILED" and "skipped" lines, or is one test.
# What a failing one said is shown, all output is in $LOGS.
set -u
logs=${LOGS:-${O:-build}/logs}
limit=${LIMIT:-1200}
mkdir -p "$logs"
passed=0
failed=0
skipped=0
bad=()

count() { # pattern file
	grep -cE "$1" "$2" || true
}

for t in "$@"; do
	name=${t#"${O:-build}"/tests/}
	name=${name#tests/}
	log=$logs/${name//\//_}.log
	start=$(date +%s.%N)
	case $t in *.sh) cmd="bash ./$t" ;; *) cmd=./$t ;; esac
	# shellcheck disable=SC2086
	timeout -k 10 "$limit" $cmd </dev/null >"$log" 2>&1
	rc=$?
	secs=$(printf '%.1f' "$(echo "$(date +%s.%N) - $start" | bc)")
	p=$(count '^\[       OK \]|^ok( |$)' "$log")
	f=$(count '^\[  FAILED  \] [A-Za-z_0-9]+$|^FAILED ' "$log")
	s=$(count '^\[  SKIPPED \] [A-Za-z_0-9]+$|^skipped ' "$log")
	# cmocka lists what failed a second time.
	grep -q '^\[==========\]' "$log" && f=$(sed -n 's/^ *\([0-9]*\) FAILED TEST(S).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }') &&
		s=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test(s).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	[ $rc -ne 0 ] && [ "$f" -eq 0 ] && f=1
	[ $rc -eq 0 ] && [ "$p" -eq 0 ] && [ "$s" -eq 0 ] && p=1
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
	if [ "$f" -gt 0 ]; then
		bad+=("$name")
		echo "FAILED   $name ($f failed, $p passed, ${secs}s, exit $rc)"
		grep -vE '^\[( RUN      |       OK )\]' "$log" | tail -n 40 | sed 's/^/    /'
	else
		echo "passed   $name ($p$([ "$s" -gt 0 ] && echo ", $s skipped"), ${secs}s)"
	fi
	[ "$s" -gt 0 ] && grep -E '^skipped |SKIPPED \] [A-Za-z_0-9]+$|^skip: ' "$log" | sed 's/^/    /'
done
[ ${#bad[@]} -gt 0 ] && echo "failed: ${bad[*]}"
if [ "$skipped" -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
