#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that blocks all signals for a moment, as libuv does with its lock, runs
# into breakpoints meanwhile and lives; the mask that it asks for is the one that it
# set, and what is sent meanwhile is kept.  One that is left blocked is so again after
# the detach.
. tests/e2e/lib.sh

N=400

gcc -O1 -g -fPIC -shared -DLIBRARY -DCALLS=1 -o "$T/liblate.so" tests/targets/late.c
build masked dynamic gcc
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	start "$BIN"
	for _ in 1 2; do
		: >"$T/out"
		trace_start 3 'p:w work' 'p:r libc.so.6:read' 'r:x work'
		say "$N"
		await '^done'
		eq "$(value set)" 0 "form $form: masks read back"
		eq "$(value kept)" 0 "form $form: signals kept"
		eq "$(value calls)" "$N" "form $form: calls"
		# Those that we keep open, when somebody sends them.
		: >"$T/out"
		say "sent $N"
		await '^done'
		eq "$(value taken)" "$((3 * N))" "form $form: signals that were sent and taken"
		eq "$(value set)" 0 "form $form: masks read back with one of ours pending"
		eq "$(value calls)" "$((2 * N))" "form $form: calls around them"
		trace_end
		eq "$STATUS" 0 "form $form: status"
		[ "$HITS" -ge $((3 * N)) ] || fail "form $form: only $HITS hits"
	done
	# On all that it calls while it has all blocked, while that comes and goes.
	for _ in 1 2 3; do
		: >"$T/out"
		say "$(((20 + 60 * form) * N))"
		stat_start 1 'f libc.so.6:*' 'p work'
		await '^done'
		stat_end
		eq "$(value set)" 0 "form $form, all of libc: masks read back"
		eq "$(value kept)" 0 "form $form, all of libc: signals kept"
		eq "$(value calls)" "$(((20 + 60 * form) * N))" "form $form, all of libc: calls"
	done
	# Blocked before the attach or under it: so it is afterwards.
	: >"$T/out"
	trace_start 1 'p:w work'
	say block
	await '^done'
	: >"$T/out"
	say 10
	await '^done'
	trace_end
	eq "$HITS" 10 "form $form: hits while all is blocked"
	mask=$(sed -n 's/^SigBlk:\s*//p' "/proc/$PID/status")
	[ $((0x$mask & 1 << 4)) -ne 0 ] || fail "form $form: SIGTRAP is open after the detach: $mask"
	: >"$T/out"
	say open
	await '^done'
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	kill -9 "$PID"
done

# What keeps it alive stays while jumps make room for what has been waiting.
for form in 0 1; do
	export UKPROBES_OPTIMIZATION=$form
	start "$BIN" "$T/liblate.so"
	trace_start 2 'p:w work' 'p:r libc.so.6:read' 'p:l liblate.so:late_work'
	: >"$T/out"
	say "$((40 * N))"
	await '^done'
	eq "$(value set)" 0 "form $form, with a library: masks read back"
	eq "$(value kept)" 0 "form $form, with a library: signals kept"
	eq "$(value calls)" "$((40 * N))" "form $form, with a library: calls"
	[ "$(value loads)" -gt 4 ] || fail "form $form: only $(value loads) loads"
	trace_end
	eq "$STATUS" 0 "form $form, with a library: status"
	verified "$PID" || fail "verify: $(cat "$T/verify")"
	kill -9 "$PID"
done
