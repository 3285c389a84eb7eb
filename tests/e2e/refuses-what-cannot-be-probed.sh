#!/bin/bash
# SPDX-License-Identifier: MIT
# Each refusal has its reason on one line, status 1, and leaves the target alone.
. tests/e2e/lib.sh

# refused WHAT REGEX ARG...
refused()
{
	local what=$1 re=$2 status=0

	shift 2
	timeout "$PATIENCE" "${AS[@]}" "$UKP" trace "$@" >"$T/out.r" 2>"$T/err" || status=$?
	eq "$status" 1 "$what: status"
	[ ! -s "$T/out.r" ] || fail "$what: printed something"
	grep -Eq "$re" "$T/err" || fail "$what: the reason isn't '$re'"
	! grep -q 'hits' "$T/err" || fail "$what: it ran"
}

# target_refused WHAT REGEX: of PID, which is as before
target_refused()
{
	snapshot "$PID" >"$T/before"
	refused "$1" "$2" -p "$PID" 'p work'
	snapshot "$PID" >"$T/after"
	cmp -s "$T/before" "$T/after" || fail "$1: $(diff "$T/before" "$T/after")"
	[ -z "$(broker_of "$PID")" ] || fail "$1: a broker stays"
}

build disposition dynamic gcc
for how in noclock strict; do
	start "$BIN" $how
	[ $how != strict ] || within 10 grep -q '^Seccomp:.1' "/proc/$PID/status"
	case $how in
	noclock) re='may not read the time stamp counter' ;;
	strict) re='may not read the time stamp counter|seccomp filter' ;; # root | others
	esac
	target_refused "$how" "$re"
done

# Is such a program built, and run, here?
runs_32()
{
	gcc -m32 -c -o "$T/32.o" tests/targets/32bit.S 2>>/dev/null &&
		ld -m elf_i386 -o "$T/32" "$T/32.o" 2>>/dev/null || return 1
	"$T/32" >"$T/32.out" 2>&1 &
	PIDS+=($!)
	within 10 eval "[ -s '$T/32.out' ] || gone $!" || return 1
	kill -9 $! 2>>/dev/null || true
	[ "$(cat "$T/32.out")" = ready ]
}

if runs_32; then
	start "$T/32"
	target_refused '32-bit' '32-bit'
else
	without 32-bit "this machine doesn't build or run such programs"
fi

build counter dynamic gcc
COUNTER=$BIN
if command -v strace >>/dev/null; then
	start "$COUNTER" 1 1
	strace -o "$T/strace" -p "$PID" 2>"$T/strace.err" &
	STRACE=$!
	PIDS+=("$STRACE")
	within 10 grep -q attached "$T/strace.err"
	target_refused 'traced' "traced (already )?by|traces"
	grep -q "$STRACE" "$T/err" || fail "traced: by whom isn't said"
	kill "$STRACE"
	wait "$STRACE" 2>>/dev/null || true
	within 5 grep -q 'TracerPid:.0$' "/proc/$PID/status"
	trace_start 1 'p work'
	say go
	await '^done'
	trace_end
	eq "$HITS" 1 "after strace: hits"
else
	without traced "there is no strace"
fi

# exec keeps the pid: so the command is asked to probe itself
status=0
bash -c 'exec "$1" trace -p $$ "p main"' - "$UKP" 2>"$T/err" || status=$?
eq "$status" 1 'ourselves: status'
grep -Eq 'itself|ourselves' "$T/err" || fail 'ourselves: no reason'
refused 'not found' 'no process' -p 4194000 'p work'
if grep -q '^Kthread:.1' /proc/2/status 2>>/dev/null; then
	refused 'kernel thread' 'kernel thread' -p 2 'p work'
else
	without "kernel thread" "none is seen here"
fi

start "$COUNTER" 1 1
for def in 'r execve' 'p execve+4' 'p pthread_create+20' 'r setjmp' 'r sigprocmask' \
	'r _setjmp' 'p work+1' 'p nowhere' 'p 0x1000' 'p work $retval' 'p work %eax2'; do
	snapshot "$PID" >"$T/before"
	refused "$def" '.' -p "$PID" "$def"
	assert_untouched "$PID" "$T/before"
done
for def in 'p sigaction' 'p pthread_sigmask' 'p libc.so.6:sigprocmask'; do
	refused "$def" 'a probe of its own there, by which the program lives' -p "$PID" "$def"
done
for def in 'r dlsym' 'r dl_iterate_phdr'; do
	refused "$def" 'looks at its own return address' -p "$PID" --ret=slot "$def"
done
refused 'r dlsym' 'looks at its own return address, and exit sites' -p "$PID" 'r dlsym'
refused '--ret=call' 'looks at its own return address' -p "$PID" --ret=call 'r dlsym'
refused '--ret=walk' 'auto, exit, call or slot' -p "$PID" --ret=walk 'r work'
refused '--ret=exit' '.' -p "$PID" --ret=exit 'r dlsym'
# All or nothing: a good one beside a bad one isn't planted.
refused 'one of two' 'nowhere' -p "$PID" 'p work' 'p nowhere'
assert_untouched "$PID" "$T/before"

# Somebody else's breakpoint, or patch, at the place: the memory isn't as the file.
start "$COUNTER" 1 1
AT=$("$UKP" funcs -p "$PID" work | awk '$1 == "work" { print $2 }')
[ -n "$AT" ] || fail "where work() is isn't told"
byte()
{
	dd if="/proc/$PID/mem" bs=1 count=1 skip=$((AT)) 2>/dev/null | od -An -tu1 | tr -d ' '
}
write_byte()
{
	# shellcheck disable=SC2059 # the byte is the format
	printf "\\$(printf %03o "$1")" | dd of="/proc/$PID/mem" bs=1 seek=$((AT)) conv=notrunc 2>/dev/null
}
WAS=$(byte)
for other in 204 $((WAS ^ 1)); do
	write_byte "$other"
	refused "another byte at work()" "differ from the file" -p "$PID" 'p work'
	eq "$(byte)" "$other" "what somebody else wrote"
done
write_byte "$WAS"
trace_start 1 'p work'
say go
await '^done'
trace_end
eq "$HITS" 1 "with its own byte again: hits"

export UKPROBE=$T/nowhere
target_refused "the command is elsewhere" "is not at $T/nowhere; UKPROBE in the environment may say"
unset UKPROBE

if [ "$(id -u)" = 0 ]; then
	user
	target_refused "another user's" 'belongs to user'
fi

# An unwinder that begins where it was called from: a destructor's end. Its library is known
# by its soname, too.
build ways cc g++
start "$BIN"
for def in 'r libgcc_s.so.1:_Unwind_Resume' 'f libgcc_s.so.1:_Unwind_Resume%return'; do
	for ret in auto slot; do
		refused "$def" 'looks at its own return address|none of the 1 places' -p "$PID" "--ret=$ret" "$def"
	done
done
trace_start 1 'p libstdc++.so.6:__cxa_throw'
trace_end
