#!/bin/bash
# SPDX-License-Identifier: MIT
# The core of a probed process has what a debugger needs of us, and not the
# hundreds of megabytes of address space behind it.
. tests/e2e/lib.sh

command -v gdb >>/dev/null || skip "there is no gdb"
export UKPROBES_OPTIMIZATION

MOST=$((8 << 20))
BY_GDB=$((40 << 20)) # it writes what a file has as well: 26 MB of a program without us
TRUE='innermost middle middle middle outermost main'

# By the kernel, where it puts them beside the program; else by gdb, that looks at the same marks.
make_core()
{
	if [ "$(cat /proc/sys/kernel/core_pattern)" = core ] && [ "$(ulimit -S -c)" = unlimited ]; then
		kill -SEGV "$PID"
		within 20 eval '! alive "$PID"' || fail "it lives on"
		CORE=$(echo "$T"/core*)
		[ -f "$CORE" ] || fail "there is no core"
		return
	fi
	CORE=$T/core
	MOST=$BY_GDB
	gdb -nx -q -batch -iex 'set debuginfod enabled off' -p "$PID" -ex "generate-core-file $CORE" \
		>"$T/gdb" 2>&1 || fail "gdb makes no core: $(tail -5 "$T/gdb")"
	kill -9 "$PID"
}

build frames gdb gcc
for how in '0 slot' '1 call'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	ulimit -S -c unlimited 2>>/dev/null || true
	start env -C "$T" "$BIN"
	ulimit -S -c 0
	await '^inside'
	trace_start 3 "--ret=$RET" 'r:i innermost $retval' 'r:m middle $retval' 'r:o outermost $retval'
	[ $UKPROBES_OPTIMIZATION = 0 ] ||
		within 20 eval '"$UKP" list -p "$PID" | grep -q OPTIMIZED' || fail "no jump comes"
	: >"$T/out"
	say a
	await '^inside'
	ulimit -S -c unlimited 2>>/dev/null || true
	make_core
	ulimit -S -c 0
	trace_wait
	size=$(stat -c %s "$CORE")
	[ "$size" -le $MOST ] || fail "$how: the core has $size bytes"
	timeout "$PATIENCE" gdb -nx -q -batch -iex 'set debuginfod enabled off' -c "$CORE" "$BIN" \
		-ex 'source gdb/ukprobes.py' -ex bt >"$T/gdb" 2>"$T/gdb.err" ||
		fail "gdb: $(tail -5 "$T/gdb.err")"
	eq "$(backtrace_of innermost "$T/gdb")" "$TRUE" "bt, $how: $(cat "$T/gdb" "$T/gdb.err")"
	echo "$how: a core of $size bytes"
	rm "$CORE"
done
