#!/bin/bash
# SPDX-License-Identifier: MIT
# A runtime that walks its own stack by the return addresses on it (HotSpot, V8,
# Go, OCaml) has none of them replaced, which would kill it at its next collection; its
# functions can be probed at their entries, and at their returns by exit sites.
. tests/e2e/lib.sh

call()
{
	: >"$T/out"
	say go
	await '^wrong'
}

no_jump()
{
	"$UKP" list -p "$PID" | grep -q "callee.*int3: Go's goroutines may be anywhere"
}

for mark in plain JNI_CreateJavaVM caml_frametable _ZN2v87Isolate3NewERKNS0_12CreateParamsE runtime.morestack GO_NOTE GO_TABLE; do
	case $mark in
	plain) build walker plain gcc -no-pie ;;
	GO_*) build walker "$mark" gcc -no-pie "-D$mark" ;;
	*) build walker "$mark" gcc -no-pie "-DMARK=\"$mark\"" ;;
	esac
	start "$BIN"
	snapshot "$PID" >"$T/before"
	trace_start 1 'p callee'
	call
	case $mark in
	GO_*) within 20 no_jump || fail "$mark: $("$UKP" list -p "$PID")" ;;
	esac
	trace_end
	eq "$HITS" 1 "$mark: hits"
	eq "$(value wrong)" 0 "$mark: walks that an entry probe disturbed"
	assert_untouched "$PID" "$T/before"
	case $mark in
	GO_*)
		status=0
		"$UKP" trace -p "$PID" --for 20 'p runtime.mexit' >"$T/trace" 2>"$T/err" || status=$?
		eq "$status" 1 "$mark: runtime.mexit: status"
		grep -q "Go's runtime may run it with all signals blocked" "$T/err" || fail "$mark: no reason"
		trace_start 1 'p runtime.chansend1' "f $(basename "$BIN"):*"
		trace_end
		grep -q "1 places are not probed: Go's runtime" "$T/err" || fail "$mark: not one refused"
		;;
	esac
	if [ $mark = plain ]; then
		# So it would be: this shows that the program looks.
		trace_start 1 --ret=slot 'r callee'
		call
		trace_end
		eq "$(value wrong)" 1 "without a mark: walks that a return probe disturbed"
		eq "$HITS $RECORDS" "1 1" "without a mark: returns"
	else
		for def in 'r callee' 'f callee%return' 'p callee%return'; do
			status=0
			"$UKP" trace --ret=slot -p "$PID" --for 20 "$def" >"$T/trace" 2>"$T/err" || status=$?
			eq "$status" 1 "$mark: $def: status"
			grep -q 'exit sites' "$T/err" || fail "$mark: $def: no reason"
			assert_untouched "$PID" "$T/before"
			trace_start 1 "$def"
			call
			trace_end
			eq "$(value wrong)" 0 "$mark: $def: walks that exit sites disturbed"
			eq "$HITS $RECORDS" "1 1" "$mark: $def: returns"
			assert_untouched "$PID" "$T/before"
		done
	fi
	say end
done
