#!/bin/bash
# SPDX-License-Identifier: MIT
# Who sets handlers and masks while we do so, too, gets what it has set: the old handler
# is asked for while its signal comes, several threads set handlers at once, a child by
# vfork() gives one back, a fault's handler is saved and given back, all signals but one
# are blocked when we come.
. tests/e2e/lib.sh

build actions dynamic gcc
for how in old many save vfork most; do
	for form in 0 1; do
		export UKPROBES_OPTIMIZATION=$form
		start "$BIN" "$how"
		for _ in 1 2 3; do
			stat_start 1 'p:w work'
			: >"$T/out"
			await '^rounds'
			: >"$T/out"
			await '^rounds'
			stat_end
			alive "$PID" || fail "$how, form $form: the target has ended"
			! grep -q '^wrong' "$T/out" || fail "$how, form $form: $(grep -m1 '^wrong' "$T/out")"
			[ "$how" = many ] || [ "$(awk '$3 ~ /^work/ || $2 ~ /^work/ { print $1 }' "$T/table")" -gt 0 ] ||
				fail "$how, form $form: no hits: $(cat "$T/table")"
		done
		verified "$PID" || fail "verify: $(cat "$T/verify")"
		kill -9 "$PID"
	done
done
