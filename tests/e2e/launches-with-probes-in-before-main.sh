#!/bin/bash
# SPDX-License-Identifier: MIT
# trace DEF... -- CMD: constructors are seen, CMD's status and signals passed on,
# its input and output are its own.
. tests/e2e/lib.sh

# run WANT-STATUS WANT-HITS ARG...
run()
{
	local status=0 want=$1 hits=$2

	shift 2
	timeout "$PATIENCE" "$UKP" trace -o "$T/trace" "$@" >"$T/said" 2>"$T/err" || status=$?
	eq "$status" "$want" "$*: status"
	[ "$hits" = none ] && return
	figures "$T/err"
	eq "$HITS" "$hits" "$*: hits"
	eq "$(wc -l <"$T/trace")" "$RECORDS" "$*: lines"
}

for how in "gcc" "gcc -static" "gcc -static-pie" "gcc -no-pie" "musl-gcc" "musl-gcc -static"; do
	command -v "${how%% *}" >>/dev/null || continue
	# shellcheck disable=SC2086 # words
	build launched "$(tr -d ' ' <<<"$how")" $how || continue
	run 7 4 'p early $arg1' 'r early $retval' 'p once' 'r:o once $retval:s32' -- "$BIN" 7
	eq "$(grep -c ': o: (.*<- once) arg1=3$' "$T/trace")" 1 "$how: once's value"
	run 0 2 'p early' 'p once' -- "$BIN" 0
	run 143 1 'p once' -- "$BIN" kill 15
	run 139 1 'p once' -- "$BIN" crash
	# Where others have a return address it has the number of arguments.
	[ "${how%% *}" = musl-gcc ] || run 4 1 'r _start' -- "$BIN" args 1 2
	run 1 none --ret=slot 'r _start' -- "$BIN" args 1 2
	grep -q 'nobody calls it' "$T/err" || fail "$how: $(cat "$T/err")"
	run 4 none --ret=slot "f ${BIN##*/}:*%return" -- "$BIN" args 1 2
	run 0 202 'p takes +0($arg1):string' 'p early' 'r once $retval' -- "$BIN" segv
	eq "$(grep -c 'arg1="text"' "$T/trace")" 100 "$how: strings"
	eq "$(grep -c 'arg1=(fault)' "$T/trace")" 100 "$how: faults"
done

build launched gcc gcc
# Statuses as a shell has them, one line each.
for cmd in "$T/missing" no-such-command-anywhere; do
	# (Where PATH has a folder that is not for us it would be "Permission denied".)
	PATH=/usr/bin:/bin run 127 none 'p once' -- "$cmd"
	eq "$(cat "$T/err")" "ukprobe: cannot run $cmd: No such file or directory" "a missing command"
done
run 1 none 'p nowhere' -- "$BIN" 0
! grep -q hits "$T/err" || fail "refused, but it ran"
run 126 none 'p once' -- /etc/passwd
eq "$(cat "$T/err")" "ukprobe: cannot run /etc/passwd: Permission denied" "not executable"

# Input and output are the command's.
seq 2000 >"$T/input"
timeout "$PATIENCE" "$UKP" trace -o "$T/trace" 'p once' -- "$BIN" cat <"$T/input" >"$T/output" 2>"$T/err" ||
	fail "cat: $?"
cmp "$T/input" "$T/output" || fail "input and output differ"

# A script: what is probed is its interpreter.
printf '#!/bin/sh\nexit 9\n' >"$T/script"
chmod +x "$T/script"
run 9 none 'p libc.so.6:exit' -- "$T/script"

# Without definitions it just runs.
run 3 0 -- "$BIN" 3
# SIGTERM goes to the command (which waits for input), and its end is told.
mkfifo "$T/never"
exec 8<>"$T/never"
"$UKP" trace -o "$T/trace" 'p once' -- "$BIN" cat >>"$T/said" 2>"$T/err" <"$T/never" &
TRACE=$!
PIDS+=("$TRACE")
within 10 test -s "$T/trace"
kill -TERM "$TRACE"
trace_wait 10
eq "$STATUS" 143 "SIGTERM: status"
