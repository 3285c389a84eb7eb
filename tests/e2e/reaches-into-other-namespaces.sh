#!/bin/bash
# SPDX-License-Identifier: MIT
# A target in a pid and mount namespace of its own, with a file system view
# where its file has another path; threads are shown by our ids.
. tests/e2e/lib.sh
[ "$(id -u)" = 0 ] || skip "needs root"
unshare -pfm --mount-proc true 2>>/dev/null || skip "no namespaces here"
build counter dynamic gcc
cp "$BIN" "$T/counter"
mkdir "$T/in"
cat >"$T/inside" <<EOF
mount -t tmpfs none $T/in && cp $T/counter $T/in/hidden && exec $T/in/hidden 2 100 usec=3000
EOF
start unshare -pfm --mount-proc sh "$T/inside"
UNSHARE=$PID
PID=$(pgrep -P "$UNSHARE")
PIDS+=("$PID")
[ ! -e "$T/in/hidden" ] || fail "the target's file is to be seen here"
snapshot "$PID" >"$T/before"
trace_start 2 'p:e work' 'r:x work $retval'
say go
await '^done'
trace_end
eq "$HITS" 400 hits
eq "$RECORDS" 400 records
grep -q 'hidden-' "$T/trace" || fail "no names of threads: $(head -2 "$T/trace")"
! grep -q -- '-1 ' "$T/trace" || fail "inner ids"
assert_untouched "$PID" "$T/before"
