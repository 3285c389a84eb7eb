#!/bin/bash
# SPDX-License-Identifier: MIT
# The agent's image: no vector or x87 register but in the restoring of the
# program's own state and in the stores of what a probe asks for, no undefined
# symbol, no data, and the same bytes wherever it is linked.
set -u
cd "$(dirname "$0")/../.."
o=${O:-build}
elf=$o/agent.elf
bad=0
complain() {
	echo "agent: $*" >&2
	bad=1
}

[ -s "$elf" ] || { echo "agent: $elf is not built" >&2; exit 1; }
undefined=$(nm -u "$elf")
[ -z "$undefined" ] || complain "undefined symbols: $undefined"

# The head is data: two numbers and a table.  So are constants, behind the last function.
head=$(( 16 + 4 * $(grep -c '^	\.long' src/agent/in/head.S) ))
end=$(nm -S --defined-only "$elf" | awk '$3 ~ /^[tT]$/ { print "0x" $1 " 0x" $2 }' |
	while read -r at size; do echo $((at + size)); done | sort -n | tail -1)
asm=$(objdump -d --no-show-raw-insn --start-address=$head --stop-address="$end" "$elf" | sed 1,3d)
count=$(grep -cE '^[[:space:]]+[0-9a-f]+:' <<<"$asm")
[ "$count" -gt 500 ] || complain "only $count instructions seen"
# Any mnemonic in f is the x87's.  What stores one register, or all, and changes
# none has functions of its own, and these have nothing else of the kind.
vector=$(awk '
	/^[0-9a-f]+ <.*>:$/ { fn = $2; next }
	fn == "<ukp_arch_xmm>:" && $2 == "movups" && $3 ~ /^%xmm[0-9]+,\(%rdi\)$/ { next }
	fn == "<ukp_arch_st>:" && $2 == "fxsave64" { next }
	fn == "<resume_direct>:" && ($2 == "xrstor64" || $2 == "fxrstor64") { next }
	/%([xyz]mm|mm|k)[0-9]|%st/ || $2 ~ /^(v?(ld|st)mxcsr|xsave|xrstor|f|emms|vzero)/' <<<"$asm")
[ -z "$vector" ] || complain "vector state is touched: $vector"
stores=$(grep -cE '[[:space:]]movups %xmm[0-9]+,\(%rdi\)|[[:space:]]fxsave64 ' <<<"$asm")
[ "$stores" = 17 ] || complain "$stores stores of vector state: one for each of 16 registers, and fxsave64"
tls=$(grep -E '%(fs|gs):' <<<"$asm" | grep -vE '%fs:(0x0|\(%rdi\))')
[ -z "$tls" ] || complain "thread-local storage: $tls"
calls=$(grep -cE '\bsyscall\b' <<<"$asm")
[ "$calls" -le 6 ] || complain "$calls syscall instructions: a hit must not make any"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# By sources, as the build has it: an object may be left of one that is gone.
objs=$(find src/engine src/agent/in -name '*.[cS]' | sed "s|^src/\(.*\)|$o/obj/\1.o|")
sed 's/\. = 0;/. = 0x12345000;/' src/agent/agent.lds >"$tmp/other.lds"
# shellcheck disable=SC2086
if ld -static --build-id=none -T "$tmp/other.lds" -o "$tmp/other.elf" $objs 2>"$tmp/err" &&
	objcopy -O binary -j .text "$tmp/other.elf" "$tmp/other.bin" &&
	ld -static --build-id=none -T src/agent/agent.lds -o "$tmp/same.elf" $objs 2>>"$tmp/err" &&
	objcopy -O binary -j .text "$tmp/same.elf" "$tmp/same.bin"; then
	cmp -s "$tmp/same.bin" "$tmp/other.bin" || complain "the image depends on its address"
else
	complain "cannot link the image: $(cat "$tmp/err")"
fi
[ $bad -eq 0 ] && echo "agent: $count instructions, $(stat -c %s "$o/agent.bin") bytes, position-independent"
exit $bad
