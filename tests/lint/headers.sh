#!/bin/bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as C11 and as C++; each inner header alone
# as C.
set -u
cd "$(dirname "$0")/../.."
bad=0
n=0
for h in include/ukprobes/*.h; do
	n=$((n + 1))
	gcc -std=c11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c "$h" || bad=1
	g++ -std=c++11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ "$h" || bad=1
done
while read -r h; do
	n=$((n + 1))
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Iinclude -Isrc -fsyntax-only -x c "$h" || {
		echo "headers: $h does not compile alone" >&2
		bad=1
	}
done < <(find src -name '*.h')
[ $bad -eq 0 ] && echo "headers: $n compile alone"
exit $bad
