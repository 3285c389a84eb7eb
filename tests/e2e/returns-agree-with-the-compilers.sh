#!/bin/bash
# SPDX-License-Identifier: MIT
# Entry and return probes on all functions of a program say what a build says that the
# compiler has instrumented (-finstrument-functions): the same calls in the same order,
# call by call, in each thread, those that longjmp() leaves included; the same values,
# where a wrapper in that build can see them; and, on that build itself, where both can
# be compared in one run, the same durations.  Long: of bzip2 and lua, whose sources
# come from Debian.
. tests/e2e/lib.sh

# As many calls in both: what has a name is called by it, and by each caller.
FLAGS="-std=gnu99 -O2 -g -w -fno-inline -fno-ipa-cp -fno-ipa-sra -fno-ipa-icf -fno-ipa-pure-const
	-fno-ipa-modref -fno-partial-inlining"
EVENTS=('f:e %s:*' 'f:x %s:*%%return v=$retval d=$retval:f64 ns=$duration')

# program NAME SOURCE... [-- LINKING...]: $T/NAME, and $T/NAME.hooked with $WRAP's wrappers
program()
{
	local name=$1 sources=() w wraps=()

	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		sources+=("$1")
		shift
	done
	shift || true
	for w in $WRAP; do
		wraps+=("-Wl,--wrap=$w")
	done
	# shellcheck disable=SC2086
	gcc $FLAGS $DEFS -o "$T/$name" "${sources[@]}" "$@" -lpthread || fail "$name can't be built"
	# shellcheck disable=SC2086
	gcc $FLAGS $DEFS -finstrument-functions -o "$T/$name.hooked" "${sources[@]}" -Wl,-rpath,"$T" \
		"${wraps[@]}" "$@" "${wraps[@]+$T/wrap.o}" "$T/hooks.so" -lpthread || fail "$name can't be built with hooks"
	nm "$T/$name.hooked" >"$T/$name.nm"
}

# traced HOW PROGRAM ARG...: launched with all its functions probed, input from $T/in
traced()
{
	local how=$1 program=$2 times
	shift 2

	# A reader that gets no CPU for long loses records; then again.
	for ((times = 5; times; times--)); do
		# shellcheck disable=SC2059
		HOOKS=$T/hooks.same "$UKP" trace -o "$T/trace" "--ret=$how" "$(printf "${EVENTS[0]}" "$program")" \
			"$(printf "${EVENTS[1]}" "$program")" -- "./$program" "$@" <"$T/in" >"$T/out.$how" 2>"$T/err" ||
			fail "$program, $how: status $?"
		figures "$T/err"
		[[ $WHY = *"ring full"* ]] || return 0
	done
	fail "$program, $how: $WHY"
}

# agrees NAME ARG...: what it says is the same in each build, with probes and without
agrees()
{
	local name=$1 how said

	shift
	cd "$T"
	HOOKS=$T/hooks.alone "./$name.hooked" "$@" <in >expected || fail "$name itself: status $?"
	for how in $HOWS; do
		traced "$how" "$name" "$@"
		cmp -s expected "out.$how" || fail "$name, $how: another result"
		said=$("$AGREE" "$name.nm" trace hooks.alone $VALUES) || fail "$name, $how: $said"
		echo "$name, $how: $said"
	done
	traced auto "$name.hooked" "$@"
	cmp -s expected out.auto || fail "$name, hooked: another result"
	# shellcheck disable=SC2086
	said=$("$AGREE" "$name.nm" trace hooks.same --same-run $VALUES) || fail "$name, hooked: $said"
	echo "$name, one run: $said"
	cd - >/dev/null
}

# source NAME DIR: of Debian, by a list of its own
source_of()
{
	local apt=(-o "Dir::Etc::SourceList=$T/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$T/apt/lists" -o "Dir::Cache=$T/apt/cache" -o APT::Sandbox::User=root)

	command -v apt-get >/dev/null || return 1
	if [ ! -d "$T/apt" ]; then
		mkdir -p "$T/apt/lists/partial" "$T/apt/cache/archives/partial"
		echo 'deb-src http://deb.debian.org/debian bookworm main' >"$T/apt/sources.list"
		apt-get -qq "${apt[@]}" update >"$T/apt.log" 2>&1 || return 1
	fi
	(cd "$T/apt" && apt-get -qq "${apt[@]}" source --download-only "$1" && tar xf "$1"_*.orig.tar.*) >"$T/apt.log" 2>&1
}

# wrapped MACROS: $T/wrap.o, of functions with integers for arguments, and an integer (W) or
# a double (D) for a result
wrapped()
{
	cat >"$T/wrap.c" <<-'C'
		void hooks_value(unsigned long value);
		#define ARGS long a, long b, long c, long d, long e, long f
		#define WRAP(type, name)                                  \
			type __real_##name(ARGS);                         \
			type __wrap_##name(ARGS)                          \
			{                                                 \
				union { type v; unsigned long bits; } u;  \
				u.v = __real_##name(a, b, c, d, e, f);    \
				hooks_value(u.bits);                      \
				return u.v;                               \
			}
		#define W(name) WRAP(long, name)
		#define D(name) WRAP(double, name)
	C
	echo "$1" >>"$T/wrap.c"
	gcc -O2 -c -o "$T/wrap.o" "$T/wrap.c" || fail "no wrappers"
}

AGREE=$PWD/tests/e2e/agree.py
AGREE_LUA=$PWD/tests/e2e/agree.lua
command -v python3 >/dev/null || skip "python3 is not there"
gcc -O2 -w -D_GNU_SOURCE -fPIC -shared -fvisibility=hidden -o "$T/hooks.so" tests/targets/hooks.c

HOWS=auto
WRAP=
VALUES=
DEFS=-D_GNU_SOURCE
echo all >"$T/in"
program returns tests/targets/returns.c
agrees returns
[ -n "$LONG" ] || exit 0

HOWS='auto slot call'
if source_of bzip2; then
	S=$(echo "$T"/apt/bzip2-*)
	wrapped 'W(BZ2_decompress) W(BZ2_bzRead)'
	WRAP='BZ2_decompress BZ2_bzRead'
	DEFS=-D_FILE_OFFSET_BITS=64
	program bzip2 "$S"/{blocksort,huffman,crctable,randtable,compress,decompress,bzlib,bzip2}.c
	# A ring has room for about as many records as this makes.
	{ seq 1 2500; head -c 3000 "$UKP"; } >"$T/in"
	cp "$T/in" "$T/before"
	agrees bzip2 -c
	cp "$T/expected" "$T/in"
	VALUES="--values $WRAP"
	agrees bzip2 -dc
	cmp -s "$T/before" "$T/expected" || fail "bzip2 is not itself"
else
	without bzip2 "no sources: $(tail -1 "$T/apt.log")"
fi
if source_of lua5.4; then
	S=$(echo "$T"/apt/lua-*/src)
	rm "$S/luac.c"
	wrapped 'W(lua_type) W(lua_isinteger) W(luaO_ceillog2) D(lua_tonumberx) D(luaL_checknumber)'
	WRAP='lua_type lua_isinteger luaO_ceillog2 lua_tonumberx luaL_checknumber'
	# What it keeps by the addresses of strings, or at random, is to be the same each time.
	DEFS="-DLUA_USE_POSIX -Dluai_makeseed(L)=0x5eed -DSTRCACHE_N=1 -DSTRCACHE_M=1"
	VALUES='--values lua_type lua_isinteger luaO_ceillog2 --doubles lua_tonumberx luaL_checknumber'
	program lua "$S"/*.c -- -lm -ldl
	cp "$AGREE_LUA" "$T/in"
	agrees lua -
else
	without lua "no sources: $(tail -1 "$T/apt.log")"
fi
