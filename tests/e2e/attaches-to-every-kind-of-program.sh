#!/bin/bash
# SPDX-License-Identifier: MIT
# The attach matrix: kinds of builds, as root and as another user.  Each target
# does 2 x 500 calls; entry and return probes see each of them.
. tests/e2e/lib.sh

# one NAME PLACE CMD...
one()
{
	local name=$1 place=$2 who=${AS[*]:+ as nobody}

	shift 2
	start "$@"
	[ "$place" != addr ] || place=$(value '&work')
	snapshot "$PID" >"$T/before"
	trace_start 2 "p:e $place \$arg1:u64" "r:x $place \$retval:x64 \$duration"
	say go
	await '^done'
	trace_end
	eq "$STATUS" 0 "$name$who: status"
	eq "$(value wrong)" 0 "$name$who: wrong results in the target"
	eq "$HITS" "$((2 * $(value work)))" "$name$who: hits"
	eq "$RECORDS" "$HITS" "$name$who: records"
	eq "$(grep -c ': x: (' "$T/trace")" "$(value work)" "$name$who: return lines"
	eq "$(grep -c ' arg1=0x0 ' "$T/trace")" $((NR * 50)) "$name$who: NULL returns"
	assert_untouched "$PID" "$T/before"
	say end
	wait "$PID" || fail "$name$who: the target ended with $?"
}

matrix()
{
	NR=2
	build counter dynamic gcc && one dynamic work "$BIN" 2 500
	build counter nopie gcc -no-pie -fno-pie && one no-PIE work "$BIN" 2 500
	build counter static gcc -static && one static work "$BIN" 2 500
	build counter static-pie gcc -static-pie && one static-PIE work "$BIN" 2 500
	build counter stripped gcc -rdynamic -s && one 'stripped, by dynamic symbol' work "$BIN" 2 500
	build counter bare gcc -s && one 'stripped, by address' addr "$BIN" 2 500
	build counter bare-nopie gcc -s -no-pie -fno-pie && one 'no-PIE, by address' addr "$BIN" 2 500
	if command -v musl-gcc >>/dev/null && build counter musl musl-gcc; then
		one musl work "$BIN" 2 500
		build counter musl-static musl-gcc -static && one 'static musl' work "$BIN" 2 500
	else
		without musl "there is no musl-gcc"
	fi
	NR=50
	build counter dynamic gcc && one '50 threads' work "$BIN" 50 500
}

matrix
if [ "$(id -u)" = 0 ]; then
	user
	matrix
else
	without "another user" "needs root"
fi
