#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh [PROGRAM...]: a counting probe on every instruction of a module that can
# be probed, under work that is wide; what the work says must be the same.
#
# PROGRAM names a file beside this one that states the work.  Without one all are
# run, and then what long.list names.
#
#	module NAME		what is probed from here on: a row of the table
#	run [OPTION...] TITLE CMD...	once without and once with probes
#	   -i FILE		standard input; nothing happens before it comes
#	   -m TEXT		the command says this on a line, then waits for the end
#				of its input: the probes are taken out there, and
#				the code is compared with the file
#	   -l			launched by ukprobe, so that its start is probed too
#	   -b			without waiting for jumps
#	   -r			entries and returns of all functions instead; they are to pair.
#				By RET=slot, if that is set
#	   -t SECONDS		at most
#	build OUT CC FLAGS...	a program; sets BIN
#	input TITLE		standard input becomes a file; sets IN
#
# A command runs in an empty folder; what it leaves there is compared as well.
# QUICK=1: the slice of "make check"; a program looks at $QUICK itself.
# FULL=1: the counts of long.list that take hours.
set -u
export LC_ALL=C TZ=UTC
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd "$(dirname "$0")/../.." || exit 1

O=${O:-build}
UKP=$PWD/$O/ukprobe
HERE=$PWD/tests/torture
BUILT=$PWD/$O/tests/torture
QUICK=${QUICK:-}
T=$(mktemp -d /tmp/ukp-torture-XXXXXX)
KEEP=${KEEP:-}
passed=0
failed=0
MODULE=
PIDS=()
mkdir -p "$BUILT"

# Only what this script started, by its number.
end_all()
{
	local p

	for p in "${PIDS[@]}"; do
		kill -9 "$p" 2>>/dev/null
	done
	PIDS=()
	wait 2>>/dev/null
}

cleanup()
{
	end_all
	[ -n "$KEEP" ] && echo "kept: $T" || rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

now()
{
	date +%s.%N
}

since()
{
	printf '%.1f' "$(echo "$(now) - $1" | bc)"
}

alive()
{
	grep -q '^State:.[^ZX]' "/proc/$1/status" 2>>/dev/null
}

# within SECONDS CMD...: until it succeeds
within()
{
	local end=$((SECONDS + $1))
	shift

	until "$@"; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

gone()
{
	[ -z "$1" ] || ! alive "$1"
}

row()
{
	[ -n "$MODULE" ] && [ -e "$T/$MODULE.tally" ] && python3 "$HERE/tally.py" row "$T" "$MODULE"
}

module()
{
	row
	MODULE=$1
}

build()
{
	local source=$HERE/$2

	BIN=$BUILT/$1
	[ "$BIN" -nt "$source" ] && return
	"$3" -O2 -g -o "$BIN.tmp" "$source" "${@:4}" && mv "$BIN.tmp" "$BIN"
}

input()
{
	IN=$T/in.$1
	cat >"$IN"
}

bad()
{
	echo "FAILED $MODULE/$title: $*"
	return 1
}

# It has the module and waits for its input.
waiting()
{
	local nr fd rest

	alive "$P" || return 0
	grep -q "/$MODULE" "/proc/$P/maps" 2>>/dev/null || return 1
	read -r nr fd rest <"/proc/$P/syscall" 2>>/dev/null || return 1
	[ "$nr $fd" = "0 0x0" ]
}

# Nothing changes any more in what form each place has.
settled()
{
	"$UKP" list -p "$P" >"$D/list.new" 2>>/dev/null || ! alive "$S" || return 1
	[ -s "$D/list.new" ] && mv "$D/list.new" "$D/list"
	! alive "$S" || { [ -s "$D/list" ] && ! grep -q 'on its way' "$D/list"; }
}

marked()
{
	grep -qxF -- "$mark" "$D/out" || ! alive "$P"
}

plain()
{
	local status

	mkdir -p "$D/work"
	# By a pipe, as with probes: some look what their input is.
	(cd "$D/work" && cat "$in" | exec timeout -k 5 "$limit" "$@" >"$D/plain.out" 2>&1 8>&-)
	status=$?
	echo "status $status" >>"$D/plain.out"
	mv "$D/work" "$D/plain"
	[ $status -ne 124 ] || bad "takes more than $limit s without probes" 
}

# The command with its probes in: P it, S ukprobe.
start()
{
	local defs=("p $MODULE:*+*")

	[ -z "$returns" ] || defs=("f $MODULE:*" "f $MODULE:*%return")
	mkfifo "$D/in"
	exec 8<>"$D/in"
	# Paths may be said, so it is the same one again.
	mkdir -p "$D/work"
	if [ -n "$launch" ]; then
		(cd "$D/work" && exec "$UKP" stat --json -o "$D/table" "${defs[@]}" \
			-- "$@" <"$D/in" >"$D/out" 2>&1 8>&-) &
		S=$!
		PIDS+=("$S")
	else
		(cd "$D/work" && exec "$@" <"$D/in" >"$D/out" 2>&1 8>&-) &
		P=$!
		PIDS+=("$P")
		within 300 waiting || bad "never waits for its input" || return 1
		alive "$P" || bad "ended before its input: $(tail -n 3 "$D/out")" || return 1
		"$UKP" stat --json "--ret=${RET:-auto}" -p "$P" -o "$D/table" "${defs[@]}" 2>"$D/err" 8>&- &
		S=$!
		PIDS+=("$S")
	fi
}

child_of()
{
	local f

	for f in /proc/[0-9]*/stat; do
		[ "$(cut -d' ' -f4 "$f" 2>>/dev/null)" = "$1" ] && echo "$f"
	done | cut -d/ -f3
}

# A launched one may be over before it is looked at: then its counts are not known
# by place.  The broker is no child of ukprobe's, the command is.
glance()
{
	P=$(child_of "$S" | head -n 1)
	[ -n "$P" ] && "$UKP" list -p "$P" >"$D/list.new" 2>>/dev/null
	[ -s "$D/list.new" ] && cp "/proc/$P/maps" "$D/maps.new" 2>>/dev/null &&
		grep -q "/$MODULE" "$D/maps.new" && mv "$D/list.new" "$D/list" &&
		mv "$D/maps.new" "$D/maps"
	! alive "$S"
}

launched()
{
	start "$@"
	feed
	within "$limit" gone "$F"
	exec 8>&-
	within "$limit" glance || bad "runs for more than $limit s with probes" || return 1
	wait "$S"
	echo "status $?" >"$D/status"
	# What ukprobe said itself is among it.
	cat "$D/status" >>"$D/out"
	grep -a '^ukprobe: ' "$D/out" >"$D/err"
	sed -i '/^ukprobe: /d' "$D/out"
	compare || return 1
	[ -e "$D/maps" ] && [ -e "$D/table" ] || echo "no counts by place" >"$D/tally"
	[ -e "$D/tally" ] || count
}

count()
{
	if [ -n "$returns" ]; then
		python3 "$HERE/pairs.py" "$D/table" >"$D/tally" || bad "$(cat "$D/tally")"
		return
	fi
	python3 "$HERE/tally.py" add "$T" "$MODULE" "$D/list" "$D/table" "$D/maps" "$D/err" \
		>"$D/tally" || bad "$(cat "$D/tally")"
}

feed()
{
	cat "$in" >"$D/in" &
	F=$!
	PIDS+=("$F")
}

# The program waits behind its mark: the code has to be what the file says.
taken_out()
{
	within "$limit" marked || bad "did not come to its mark in $limit s" || return 1
	alive "$P" || bad "ended before its mark: $(tail -n 3 "$D/out")" || return 1
	kill -INT "$S"
	within 600 gone "$S" || bad "stat does not end" || return 1
	"$UKP" verify -p "$P" >"$D/verify" 2>&1 || bad "verify: $(cat "$D/verify")"
}

finish()
{
	local stat

	[ -z "$mark" ] || taken_out || return 1
	within "$limit" gone "$F"
	exec 8>&-
	within "$limit" gone "$P" || bad "runs for more than $limit s with probes" || return 1
	within 600 gone "$S" || bad "stat does not end" || return 1
	wait "$S"
	stat=$?
	wait "$P"
	echo "status $?" >>"$D/out"
	[ $stat = 0 ] || bad "stat: $(tail -n 3 "$D/err")"
}

compare()
{
	if ! cmp -s "$D/plain.out" "$D/out"; then
		diff -a "$D/plain.out" "$D/out" | head -n 10
		bad "says something else with probes"
		return 1
	fi
	diff -r "$D/plain" "$D/work" >"$D/diff" 2>&1 || bad "leaves other files: $(head -n 3 "$D/diff")"
}

probed()
{
	local begun

	start "$@" || return 1
	begun=$(now)
	# Maps and forms belong to the moment before the work.
	within 300 planted || bad "nothing was planted: $(tail -n 3 "$D/err")" || return 1
	cat "/proc/$P/maps" >"$D/maps"
	[ -n "$base" ] && settled || within "${JUMP_SECONDS:-600}" settled || echo "    not all jumps are there"
	ready=$(since "$begun")
	begun=$(now)
	feed
	finish || return 1
	worked=$(since "$begun")
	compare || return 1
	count
}

planted()
{
	[ -n "$("$UKP" list -p "$P" 2>>/dev/null | head -c 1)" ] || ! alive "$S"
}

run()
{
	local in=/dev/null mark='' launch='' base='' returns='' limit=600 OPTIND=1 o title D P='' S='' F=''
	local ready=0 worked=0 begun bare how

	while getopts i:m:t:lbr o; do
		case $o in
		i) in=$OPTARG ;;
		m) mark=$OPTARG ;;
		t) limit=$OPTARG ;;
		l) launch=1 ;;
		b) base=1 ;;
		r) returns=1 ;;
		*) exit 2 ;;
		esac
	done
	shift $((OPTIND - 1))
	title=$1
	shift
	D=$T/$MODULE.$title
	rm -rf "$D"
	mkdir -p "$D"
	begun=$(now)
	how=probed
	[ -z "$launch" ] || how=launched
	if plain "$@" && bare=$(since "$begun") && $how "$@"; then
		passed=$((passed + 1))
		echo "ok $MODULE/$title: $(cat "$D/tally"), ${bare}s bare, ${ready}s to plant, ${worked}s probed"
		[ -n "$KEEP" ] || rm -rf "$D"
	else
		failed=$((failed + 1))
	fi
	exec 8>&-
	end_all
}

# ENV... PROGRAM...: the long runs of other tests, whose totals are added.
long()
{
	local word env=() programs=() p f

	for word in "$@"; do
		case $word in
		*=*) env+=("$word") ;;
		*) programs+=("$word") ;;
		esac
	done
	env O="$O" LIMIT=14400 "${env[@]}" tests/run.sh "${programs[@]}" | tee "$T/long"
	read -r p f <<<"$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$T/long")"
	passed=$((passed + ${p:-0}))
	failed=$((failed + ${f:-1}))
}

[ $# -gt 0 ] && ALL= || ALL=1
[ $# -gt 0 ] || set -- $(cd "$HERE" && ls ./*.sh | sed 's|^\./||; s|\.sh$||' | grep -vx -e run -e quick)
for program in "$@"; do
	echo "== $program"
	MODULE=
	# shellcheck disable=SC1090
	. "$HERE/$program.sh"
	row
done
if [ -n "$ALL" ]; then
	counts=${FULL:+full}
	counts=${counts:-short}
	while read -r line; do
		line=${line//\$O/$O}
		# shellcheck disable=SC2086
		case $line in
		'' | '#'*) ;;
		"$counts "*) long ${line#* } </dev/null ;;
		"short "* | "full "*) ;;
		*) long $line </dev/null ;;
		esac
	done <tests/torture/long.list
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
