#!/bin/bash
# SPDX-License-Identifier: MIT
# Everything is installed into an empty directory; each program of docs/library.md
# is compiled against it as its page says, and prints what the page says.  Those
# that are C++ as well are compiled as that, too.
. tests/e2e/lib.sh

PREFIX=$(cat "$O/prefix")
ROOT=$T/root
make -s O="$O" PREFIX="$PREFIX" DESTDIR="$ROOT" install >"$T/install" 2>&1 || {
	cat "$T/install"
	exit 1
}
for f in include/ukprobes/*.h; do
	cmp "$f" "$ROOT$PREFIX/$f" || fail "$f is not installed as it is"
done

# The package file names PREFIX, all lies below ROOT.
export PKG_CONFIG_PATH=$ROOT$PREFIX/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export LD_LIBRARY_PATH=$ROOT$PREFIX/lib
FLAGS=$(pkg-config --cflags --libs ukprobes)
WARN="-Wall -Wextra -Wno-unused-parameter -Werror"

awk -v t="$T" '
	/^```c$/ { n++; f = t "/" n ".c"; next }
	/^```output$/ { f = t "/" n ".want"; printf "" >f; next }
	/^```$/ { f = ""; next }
	f { print >f }
' docs/library.md

run()
{
	"$1" >"$T/got" 2>&1 || { cat "$T/got"; fail "program $2 of docs/library.md failed"; }
	cmp -s "$T/got" "$T/$2.want" || {
		diff "$T/$2.want" "$T/got" || true
		fail "program $2 of docs/library.md prints something else"
	}
}

programs=0
plus=0
for c in "$T"/*.c; do
	n=$(basename "$c" .c)
	for cc in gcc clang; do
		# shellcheck disable=SC2086
		$cc -std=gnu11 -O2 -g $WARN -o "$T/$n.$cc" "$c" $FLAGS
		run "$T/$n.$cc" "$n"
	done
	programs=$((programs + 1))
	# Designators of nested members, and casts that C spares, keep the others C.
	case $(grep -o 'ukprobes/[a-z_]*\.h' "$c" | head -n 1) in
	ukprobes/objpool.h | ukprobes/jump_label.h | ukprobes/session.h) ;;
	*) continue ;;
	esac
	for cxx in g++ clang++; do
		# shellcheck disable=SC2086
		$cxx -std=c++11 -O2 -g $WARN -x c++ -o "$T/$n.$cxx" "$c" $FLAGS
		run "$T/$n.$cxx" "$n"
	done
	plus=$((plus + 1))
done
eq "$programs" 7 "programs in docs/library.md"
eq "$plus" 3 "of them in C++"

# The static library alone, and all headers at once in either language.
for h in kprobes fprobe rethook objpool jump_label session; do
	echo "#include <ukprobes/$h.h>"
done | tee "$T/all.c" >"$T/all.cc"
# shellcheck disable=SC2086
gcc -std=c11 -Wall -Wextra -Werror -c -o "$T/all.o" "$T/all.c" $(pkg-config --cflags ukprobes)
# shellcheck disable=SC2086
g++ -std=c++11 -Wall -Wextra -Werror -c -o "$T/all.o" "$T/all.cc" $(pkg-config --cflags ukprobes)
# shellcheck disable=SC2086
gcc -std=c11 -O2 $WARN -D_GNU_SOURCE -o "$T/static" "$T/1.c" $(pkg-config --cflags ukprobes) \
	"$ROOT$PREFIX/lib/libukprobes.a" $(pkg-config --static --libs-only-l ukprobes | sed 's/-lukprobes//')
run "$T/static" 1
