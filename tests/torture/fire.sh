# SPDX-License-Identifier: MIT
# Whole modules are planted and taken out again and again, at any moment, while
# three threads run through them: the result is right, the code is the file's after
# each time, and nothing is left.
title=modules-come-and-go
D=$T/fire
mkdir -p "$D"
cycles=0
rounds=150000
echo "$rounds" | /usr/bin/python3.11 "$HERE/fire.py" >"$D/plain"
mkfifo "$D/in"
exec 8<>"$D/in"
/usr/bin/python3.11 "$HERE/fire.py" <"$D/in" >"$D/out" 2>&1 8>&- &
P=$!
PIDS+=("$P")
echo "$rounds" >&8
MODULE=python3.11
once()
{
	"$UKP" stat -p "$P" --for "0.$1" -o "$D/table" "p $2:*+*" 2>"$D/err" 8>&- || bad "stat: $(tail -n 3 "$D/err")" || return 1
	"$UKP" verify -p "$P" >"$D/verify" 2>&1 || bad "verify: $(cat "$D/verify")"
}
fire()
{
	while [ ! -s "$D/out" ]; do
		alive "$P" || bad "ended in cycle $cycles: $(cat "$D/out")" || return 1
		for m in python3.11 libc libz; do
			once $((cycles % 7 + 1)) "$m" || return 1
			cycles=$((cycles + 1))
		done
	done
	exec 8>&-
	wait "$P" || bad "status $?" || return 1
	cmp "$D/plain" "$D/out" || bad "says something else: $(cat "$D/out")"
}
if fire; then
	passed=$((passed + 1))
	echo "ok $title: $cycles times"
else
	failed=$((failed + 1))
fi
exec 8>&-
end_all
MODULE=
