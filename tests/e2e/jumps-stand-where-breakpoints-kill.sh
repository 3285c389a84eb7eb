#!/bin/bash
# SPDX-License-Identifier: MIT
# What libc runs with all signals blocked, or in the child of posix_spawn(), is
# probed by jumps alone: hits there are counted and recorded, nothing dies of it,
# and where no jump can be it is refused, with both reasons.
. tests/e2e/lib.sh
build spawns dynamic gcc
ROUNDS=${LONG:+300}
ROUNDS=${ROUNDS:-10}

# hits PLACE: of a place in the table
hits()
{
	awk -v p="$1" '$2 ~ "^" p "\\+0x0/" { n = $1 } END { print n + 0 }' "$T/table"
}

# asked LINE: what the target did for it went well
asked()
{
	: >"$T/out"
	say "$1"
	await '^done' 120
	eq "$(value wrong)" 0 "what went wrong at '$1'"
}

forms()
{
	"$UKP" list -p "$PID"
}

# refused REGEX ARG...: no place is planted, for that reason
refused()
{
	local why=$1

	shift
	if "$UKP" "$@" >"$T/said" 2>"$T/err"; then
		fail "$*: planted all the same"
	fi
	grep -Eq -- "$why" "$T/err" || fail "$*: the reason isn't '$why'"
}

start "$BIN"
asked "go 1" # libc sets itself up for threads
snapshot "$PID" loose >"$T/before"

# --- single functions: every call counts, those of the children too -------------
stat_start 4 'p getenv' 'p execve' 'p dup2' 'p _exit'
eq "$(forms | grep -c '\[OPTIMIZED\] jump$')" 4 "places that have their jumps when the start is over"
asked "go $ROUNDS"
asked abort
stat_end
# Of each round one is the child's, which looks for the program.
eq "$(hits getenv)" $((2 * ROUNDS)) "hits of getenv"
eq "$(hits execve)" $((5 * ROUNDS)) "hits of execve"
[ "$(hits dup2)" -ge "$ROUNDS" ] || fail "dup2: $(hits dup2) hits"
eq "$(hits _exit)" 0 "hits of _exit in children that have their own memory"
assert_untouched "$PID" "$T/before" loose

# --- records: registers, and which thread it was -----------------------------------
trace_start 2 'p:env getenv $arg1' 'p:ex execve path=$arg1 env=$arg3'
asked "go $ROUNDS"
trace_end
eq "$HITS $MISSES" "$((7 * ROUNDS)) 0" "hits and misses"
eq "$(grep -c "spawns.dynamic-$PID .*: env: (getenv+0x0/" "$T/trace")" $((2 * ROUNDS)) "records of getenv"
eq "$(grep -cE ': ex: \(execve\+0x0/.*path=0x[0-9a-f]+ env=0x[0-9a-f]+$' "$T/trace")" $((5 * ROUNDS)) "records of execve"
assert_untouched "$PID" "$T/before" loose

# --- other clients come and go elsewhere meanwhile: not one call is missed -----------
stat_start 1 'p getenv'
: >"$T/out"
say "go $((ROUNDS * 30))"
others=0
while ! grep -q '^done' "$T/out"; do
	"$UKP" trace -p "$PID" --for 0.03 'p main' 'p:x execve' >"$T/said" 2>&1 || fail "another: $(cat "$T/said")"
	others=$((others + 1))
done
[ $others -ge 2 ] || fail "only $others others came"
eq "$(value wrong)" 0 "what went wrong with others"
stat_end
eq "$(hits getenv)" $((60 * ROUNDS)) "hits of getenv while $others others came and went"
assert_untouched "$PID" "$T/before" loose

# One that is near, or at the same place, has its own, and so has the first again.
stat_start 1 'p getenv'
"$UKP" stat -p "$PID" -o "$T/second" 'p getenv' 2>"$T/err2" &
SECOND=$!
PIDS+=("$SECOND")
within 20 planted "$PID" 2 || fail "the second was not planted"
eq "$(forms | grep -c '\[OPTIMIZED\] jump$')" 2 "both have the jump"
asked "go $ROUNDS"
kill -INT "$SECOND"
wait "$SECOND" || fail "the second: $(cat "$T/err2")"
stat_end
eq "$(hits getenv)" $((2 * ROUNDS)) "hits of the first of two"
eq "$(awk '$2 ~ /^getenv/ { print $1 }' "$T/second")" $((2 * ROUNDS)) "hits of the second"
assert_untouched "$PID" "$T/before" loose

# --- all functions, and all that can be said of two instruction by instruction --------
stat_start 1000 'f libc:*' 'p posix_spawn*+*' 'p pthread_create+*' 'p __clone+*'
asked "go $ROUNDS"
asked abort
stat_end
eq "$(hits getenv)" $((2 * ROUNDS)) "hits of getenv among all"
eq "$(hits pthread_create)" "$ROUNDS" "hits of pthread_create"
assert_untouched "$PID" "$T/before" loose

# --- where no jump can be: both halves are said ----------------------------------
kills='a breakpoint kills; and no jump can stand there: '
"$UKP" stat -p "$PID" --for 0.1 'p _exit+*' >"$T/table" 2>"$T/err"
grep -Eq "[0-9] places are not probed: .*$kills" "$T/err" || fail "nothing is refused, or it isn't said why"
refused "[0-9] of [0-9]+ places cannot be probed, and all are wanted: .*$kills" \
	stat -p "$PID" --strict --for 0.1 'p _exit+*'

# Any of these places is the one that has no room.
lonely()
{
	! "$UKP" trace -p "$PID" --for 0.01 "p:lonely _exit+$1" >"$T/said" 2>"$T/err" &&
		grep -q "Failed to register probe event: lonely: .*$kills" "$T/err"
}
found=
for offset in $(seq 10 60); do
	if lonely "$offset"; then
		found=$offset
		break
	fi
done
[ -n "$found" ] || fail "no place of _exit is refused by itself"
assert_untouched "$PID" "$T/before" loose
(
	export UKPROBES_OPTIMIZATION=0
	refused 'breakpoint kills; and no jump can stand there: optimization is off' \
		trace -p "$PID" --for 0.1 'p getenv'
)
# A read may fault, and a call need not return.
refused 'only registers can be recorded' trace -p "$PID" --for 0.1 'p getenv +0($arg1):string'
refused 'only registers can be recorded' trace -p "$PID" --for 0.1 'f libc:geten[v] $stack1'
refused 'its returns cannot' trace -p "$PID" --for 0.1 'r getenv $retval'
refused 'its returns cannot' latency -p "$PID" --for 0.1 getenv
assert_untouched "$PID" "$T/before" loose

# --- killed with all of it in: the code is put back -------------------------------
stat_start 1000 'f libc:*'
kill_both
within 60 cured || fail "not cured: $(cat "$T/cure")"
assert_untouched "$PID" "$T/before" loose
asked "go 1"

# --- the last thing that a program does ------------------------------------------
status=0
printf 'go 1\nabort here\n' | "$UKP" stat -o "$T/table" 'p abort' 'p abort+*' 'p raise+*' 'p execve' -- \
	"$BIN" >"$T/said" 2>"$T/err" || status=$?
eq "$status" 134 "status of a program that aborts"
eq "$(hits abort)" 1 "hits of abort"
eq "$(hits execve)" 5 "hits of execve in a launched program"

# --- a process that shares the memory is not stopped: they wait -------------------------
build sharer dynamic gcc
start "$BIN" handlers
snapshot "$PID" loose >"$T/before"
: >"$T/out"
say share
await '^done'
stat_start 1 'p libc:getpid' 'p work'
within 30 grep -q '1 places wait for their jumps' "$T/err" || fail "nobody is told that a place waits"
forms | grep -q '\[WAITING\] none: another process shares the memory$' || fail "list: $(forms)"
forms | grep -q 'int3: another process shares the memory$' || fail "list: $(forms)"
: >"$T/out"
say alone
await '^done'
stat_end
assert_untouched "$PID" "$T/before" loose

# --- musl: read and close --------------------------------------------------------------
if ! command -v musl-gcc >/dev/null; then
	without "a static musl" "there is no musl-gcc"
	exit 0
fi
build spawns musl musl-gcc -static
start "$BIN"
asked "go 1"
snapshot "$PID" loose >"$T/before"
stat_start 3 'p read' 'p close' 'p memcpy'
eq "$(forms | grep -c '\[OPTIMIZED\] jump$')" 3 "musl: places with jumps"
asked "go $ROUNDS"
stat_end
[ "$(hits read)" -ge "$ROUNDS" ] || fail "musl: read: $(hits read) hits"
[ "$(hits close)" -ge "$ROUNDS" ] || fail "musl: close: $(hits close) hits"
assert_untouched "$PID" "$T/before" loose
