#!/bin/bash
# SPDX-License-Identifier: MIT
# Each fuzz driver for some seconds, from its corpus and a fixed seed.
set -u
cd "$(dirname "$0")/../.."
o=${O:-build}
secs=${FUZZ_SECONDS:-10}
bad=0
for src in tests/fuzz/fuzz_*.c; do
	bin=$o/fuzz/tests/fuzz/$(basename "$src" .c)
	name=${bin##*/}
	work=$(mktemp -d)
	args=(-max_total_time="$secs" -seed=1 -timeout=20 -print_final_stats=1 -artifact_prefix="$work/")
	[ -f "tests/fuzz/${name#fuzz_}.dict" ] && args+=(-dict="tests/fuzz/${name#fuzz_}.dict")
	# It looks for them by itself.
	[ "$name" = fuzz_serve ] && args+=(-detect_leaks=0)
	mkdir "$work/new"
	dirs=("$work/new")
	[ -d "tests/fuzz/corpus/${name#fuzz_}" ] && dirs+=("tests/fuzz/corpus/${name#fuzz_}")
	if "$bin" "${args[@]}" "${dirs[@]}" >"$work/log" 2>&1; then
		echo "ok $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs"
	else
		echo "FAILED $name"
		tail -n 30 "$work/log"
		bad=1
	fi
	rm -rf "$work"
done
exit $bad
