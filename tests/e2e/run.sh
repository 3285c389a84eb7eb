#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the end-to-end tests, all or those named: one line each.
# E2E_LONG=1: the counts of "make torture".
set -u
cd "$(dirname "$0")/../.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ok=0 failed=0 skipped=0
limit=120
[ -n "${E2E_LONG:-}" ] && limit=7200

[ $# -gt 0 ] || set -- tests/e2e/*-*.sh
for t in "$@"; do
	name=$(basename "$t" .sh)
	begin=$SECONDS
	timeout -k 10 $limit bash "tests/e2e/$name.sh" >"$log" 2>&1 </dev/null
	case $? in
	0)
		ok=$((ok + 1))
		echo "ok $name ($((SECONDS - begin)) s)"
		sed 's/^/	/' "$log"
		;;
	77)
		skipped=$((skipped + 1))
		echo "skipped $name: $(tail -1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		echo "FAILED $name ($((SECONDS - begin)) s)"
		tail -40 "$log" | sed 's/^/	/'
		;;
	esac
done
echo "e2e: $ok ok, $failed failed, $skipped skipped, $SECONDS s"
[ $failed = 0 ]
