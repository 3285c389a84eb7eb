#!/bin/bash
# SPDX-License-Identifier: MIT
# gdb in a probed process: bt shows all callers, past return addresses that are
# replaced, and from within copies of probed instructions.
. tests/e2e/lib.sh

command -v gdb >>/dev/null || skip "there is no gdb"
export UKPROBES_OPTIMIZATION

TRUE='innermost middle middle middle outermost main'

debug()
{
	timeout "$PATIENCE" gdb -nx -q -batch -iex 'set debuginfod enabled off' -p "$PID" \
		-ex 'source gdb/ukprobes.py' "$@" >"$T/gdb" 2>"$T/gdb.err" ||
		fail "gdb: $(tail -5 "$T/gdb.err")"
}

# Stops at each boundary of our copy of what innermost begins with, and asks for the callers.
cat >"$T/steps.py" <<'EOF'
import os

import gdb

target, start = Cache.get(), int(gdb.parse_and_eval("(long)&innermost"))
places = []
for addr, buf, size, shape, at in target.detours:
    if addr == start:
        places += [buf + off for off in range(size) if target.boundary(off, shape, at)]
for place in places:
    gdb.execute("tbreak *%d" % place, to_string=True)
with open(os.environ["FIFO"], "w") as fifo:
    fifo.write("b\n")
gdb.execute("tbreak fgets", to_string=True)
bad = seen = 0
while True:
    gdb.execute("continue", to_string=True)
    frame, names = gdb.selected_frame(), []
    pc = frame.pc()
    if pc not in places:
        break
    while frame and frame.name() != "main":
        names.append(frame.name())
        frame = frame.older()
    names = [n for n in names if n] + ["main" if frame else "nothing"]
    seen += 1
    if names != "innermost middle middle middle outermost main".split():
        bad += 1
        print("at %x: %s" % (pc, " ".join(names)))
print("seen %d" % seen, "bad %d" % bad)
EOF

build frames gdb gcc
for how in '0 auto' '0 slot' '1 auto' '1 call' '1 slot'; do
	read -r UKPROBES_OPTIMIZATION RET <<<"$how"
	start "$BIN"
	await '^inside'
	snapshot "$PID" >"$T/before"
	trace_start 4 "--ret=$RET" 'r:i innermost $retval' 'r:m middle $retval' 'r:o outermost $retval' 'p:e innermost'
	[ $UKPROBES_OPTIMIZATION = 0 ] ||
		within 20 eval '"$UKP" list -p "$PID" | grep -q OPTIMIZED' || fail "no jump comes"
	# The first call was on its way already: the next one is followed.
	: >"$T/out"
	say a
	await '^inside'
	debug -ex bt
	eq "$(backtrace_of innermost "$T/gdb")" "$TRUE" "bt, $how: $(cat "$T/gdb" "$T/gdb.err")"
	if [ $UKPROBES_OPTIMIZATION = 1 ]; then
		: >"$T/out"
		FIFO=$T/in.9 debug -ex "source $T/steps.py"
		grep -Eq '^seen [1-9][0-9]+ bad 0$' "$T/gdb" || fail "in a detour: $(grep -v Temporary "$T/gdb" "$T/gdb.err")"
		await '^inside'
	fi
	: >"$T/out"
	say fin
	await '^inside'
	eq "$(value result)" 128 "the result"
	trace_end
	eq "$HITS" $((12 + 6 * UKPROBES_OPTIMIZATION)) "$how: hits"
	assert_untouched "$PID" "$T/before"
	say end
done
