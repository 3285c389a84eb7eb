#!/bin/bash
# SPDX-License-Identifier: MIT
# Entries that a compiler left nops in take the jump there: nothing of the
# program's own code is touched, and its endbr64 stays.
. tests/e2e/lib.sh

listed()
{
	"$UKP" list -p "$PID" >"$T/list" 2>&1
	grep -q "traced+.*$1" "$T/list"
}

hits()
{
	awk '$2 ~ /^traced\+/ { n += $1 } END { print n + 0 }' "$T/table"
}

# try TAG MARK BEGINS: BIN under probes, which list says MARK of
try()
{
	start "$BIN"
	say bytes
	await '^begins'
	plain=$(value begins)
	snapshot "$PID" >"$T/before"
	"$UKP" stat -p "$PID" -o "$T/table" 'p traced' 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 30 listed "$2" || fail "$1: no $2: $(cat "$T/list")"
	: >"$T/out"
	say bytes
	await '^begins'
	case $plain in
	f30f1efa*) eq "$(value begins)" "f30f1efae9" "$1: endbr64, then the jump" ;;
	*) eq "$(value begins | cut -c1-2)" e9 "$1: the jump" ;;
	esac
	say go 1000
	await '^done'
	# Another one at the same place, with arguments and the return; the mark comes back.
	"$UKP" trace -p "$PID" -o "$T/trace" 'p:in traced $arg1:u32' 'r:out traced $retval:u32' 2>"$T/second" &
	second=$!
	PIDS+=("$second")
	within 20 planted "$PID" 3 || fail "$1: the second was not planted"
	within 30 listed "$2" || fail "$1: no $2 with three: $(cat "$T/list")"
	: >"$T/out"
	say go 500
	await '^done'
	eq "$(value wrong)" 0 "$1: wrong results"
	kill -INT "$second"
	wait "$second" || fail "$1: trace: $(cat "$T/second")"
	eq "$(grep -c ': in: .*arg1=499$' "$T/trace")" 1 "$1: the last argument"
	eq "$(grep -c ': in: ' "$T/trace")" 500 "$1: entries"
	eq "$(grep -c ': out: .*arg1=1498$' "$T/trace")" 1 "$1: the last result"
	kill -INT "$TRACE"
	wait "$TRACE" || fail "$1: stat: $(cat "$T/err")"
	eq "$(hits)" 1500 "$1: hits"
	assert_untouched "$PID" "$T/before"
	: >"$T/out"
	say bytes
	await '^begins'
	eq "$(value begins)" "$plain" "$1: the first bytes in the end"
	# A killed broker's are taken out by a cure.
	"$UKP" stat -p "$PID" -o "$T/table" 'p traced' 2>"$T/err" &
	TRACE=$!
	PIDS+=("$TRACE")
	within 30 listed "$2" || fail "$1: no $2: $(cat "$T/list")"
	kill_both
	cured || fail "$1: cure: $(cat "$T/cure")"
	assert_untouched "$PID" "$T/before"
	echo "$1: begins $plain, $2"
}

# compiled TAG COMPILER FLAGS...: false, with the reason, if that can't be
compiled()
{
	if ! command -v "$2" >/dev/null; then
		without "$1" "no $2"
	elif ! build nops "$@" 2>/dev/null >"$T/why"; then
		without "$1" "$2 doesn't take ${*:3}"
	else
		return 0
	fi
	return 1
}

for cc in gcc clang; do
	if compiled "$cc-patchable" "$cc" -fpatchable-function-entry=5 -fcf-protection=none; then
		try "$cc, patchable" '\[FTRACE\]'
	fi
	if compiled "$cc-endbr" "$cc" -fpatchable-function-entry=5 -fcf-protection=branch; then
		try "$cc, patchable behind endbr64" '\[FTRACE\]'
	fi
	if compiled "$cc-plain" "$cc" -fcf-protection=none; then
		try "$cc, without nops" '\[OPTIMIZED\]'
	fi
done
if compiled gcc-mcount gcc -pg -mfentry -mnop-mcount -fno-pic -no-pie -fcf-protection=none; then
	try "gcc, -mfentry" '\[FTRACE\]'
fi
if compiled gcc-mcount-endbr gcc -pg -mfentry -mnop-mcount -fno-pic -no-pie -fcf-protection=branch; then
	try "gcc, -mfentry behind endbr64" '\[FTRACE\]'
fi
