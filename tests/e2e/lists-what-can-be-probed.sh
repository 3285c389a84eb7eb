#!/bin/bash
# SPDX-License-Identifier: MIT
# ukprobe funcs: by name, by module and name; nothing is status 1 with a reason.
. tests/e2e/lib.sh
build counter dynamic gcc
start "$BIN" 1 1

# nothing WORD REGEX
nothing()
{
	local status=0

	"$UKP" funcs -p "$PID" "$1" >"$T/funcs" 2>"$T/err" || status=$?
	eq "$status" 1 "funcs $1: status"
	[ ! -s "$T/funcs" ] || fail "funcs $1: $(head -1 "$T/funcs")"
	eq "$(wc -l <"$T/err")" 1 "funcs $1: lines on stderr"
	grep -q -- "$2" "$T/err" || fail "funcs $1: the reason isn't '$2'"
}

exe=$(basename "$BIN")
for word in work "$exe:work" "$(realpath "$BIN"):wor?" "$exe:[w]ork"; do
	eq "$("$UKP" funcs -p "$PID" "$word" | cut -f 1,4)" "work	$exe" "funcs $word"
done
[ "$("$UKP" funcs -p "$PID" 'libc:*' | cut -f 4 | sort -u)" = libc.so.6 ] || fail "libc:*: other modules"
eq "$("$UKP" funcs -p "$PID" 'libc:*' | wc -l)" "$("$UKP" funcs -p "$PID" libc: | wc -l)" "libc: alone"
all=$("$UKP" funcs -p "$PID" | wc -l)
libc=$("$UKP" funcs -p "$PID" 'libc:*' | wc -l)
[ "$libc" -gt 500 ] && [ "$libc" -lt "$all" ] || fail "$libc functions of libc, $all in all"
nothing wrok "no match for 'wrok'.*work"
nothing 'libc:work' "no match for 'libc:work'"
nothing 'nosuch:*' "no module 'nosuch' is mapped"
eq "$("$UKP" funcs -p "$PID" 'libc:execve' | cut -f 1)" execve "what only a jump may probe"
nothing 'libc:strlen' "implementation"
