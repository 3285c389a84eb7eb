#!/bin/sh
# SPDX-License-Identifier: MIT
# What runs on a hit in one's own process stays in its section: direct calls
# and jumps from ukp_hit_text end in it (handlers are called through pointers),
# and vector registers are touched by the listed stubs only, and stored by two more.
# Nothing on a hit's way is cleared by rep stos, which takes as long as thirty stores.
set -eu

lib=${1:-${O:-build}/libukprobes.so}
stubs='^(ukp_vec_call|resume_direct)$'

range=$(objdump -h "$lib" | awk '$2 == "ukp_hit_text" { print $4, $3 }')
[ -n "$range" ] || { echo "$lib has no section ukp_hit_text" >&2; exit 1; }

objdump -d --no-show-raw-insn -j ukp_hit_text "$lib" | awk -v range="$range" -v stubs="$stubs" '
function hex(s,  i, n) {
	n = 0
	for (i = 1; i <= length(s); i++)
		n = n * 16 + index("0123456789abcdef", tolower(substr(s, i, 1))) - 1
	return n
}
BEGIN {
	split(range, r, " ")
	lo = hex(r[1]); hi = lo + hex(r[2])
}
/^[0-9a-f]+ <.*>:$/ {
	fn = $2
	gsub(/[<>:]/, "", fn)
	functions++
	next
}
$2 ~ /^(call|j[a-z]+|loop[a-z]*)$/ && $3 ~ /^[0-9a-f]+$/ {
	branches++
	to = hex($3)
	if (to < lo || to >= hi) {
		print "leaves the section: " fn ": " $0
		bad = 1
	}
}
/%[xyz]mm[0-9]|%st|%mm[0-7]|xsave|xrstor|fxsave|fxrstor|ldmxcsr|fninit/ {
	vector++
	stored = (fn == "ukp_arch_xmm" && $2 == "movups" && $3 ~ /^%xmm[0-9]+,\(%rdi\)$/) ||
		(fn == "ukp_arch_st" && $2 == "fxsave64")
	if (fn !~ stubs && !stored) {
		print "vector state: " fn ": " $0
		bad = 1
	}
}
/rep stos/ && fn != "guard_clear_busy" {
	print "cleared slowly: " fn ": " $0
	bad = 1
}
END {
	if (functions < 30 || branches < 30 || vector < 5) {
		print "not what it was: " functions " functions, " branches " branches, " vector " uses of vector state"
		bad = 1
	}
	if (!bad)
		print "hit section: " functions " functions, " branches " direct branches, all inside"
	exit bad
}'
