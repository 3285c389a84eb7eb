#!/bin/bash
# SPDX-License-Identifier: MIT
# Every #include "zone/file.h" in src/ is one that src/LAYERS allows; front sees
# the public headers alone; no CPU macro stands outside the x86/ folders.
set -u
cd "$(dirname "$0")/../.."
bad=0
complain() {
	echo "layers: $*" >&2
	bad=1
}

declare -A allowed
while read -r zone kind rest; do
	[[ -z $zone || $zone == \#* ]] && continue
	allowed[$zone]=" $zone $rest ukprobes kmod "
done <src/LAYERS

checked=0
while IFS=: read -r file _ line; do
	zone=${file#src/}
	zone=${zone%%/*}
	target=${line#*\"}
	target=${target%%/*}
	[ -n "${allowed[$zone]-}" ] || { complain "$file: zone $zone is not in src/LAYERS"; continue; }
	[[ ${allowed[$zone]} == *" $target "* ]] ||
		complain "$file: zone $zone may not include ${line#*\"}"
	checked=$((checked + 1))
done < <(grep -rnE '^#[[:space:]]*include "[a-z0-9]+/' src --include='*.[chS]')
[ "$checked" -gt 100 ] || complain "only $checked includes seen: the check looks at nothing"

while read -r hit; do
	complain "CPU macro outside x86/: $hit"
done < <(grep -rnE '__(x86_64|i386|aarch64|arm64)__' src --include='*.[chS]' | grep -v '/x86/')

for f in $(grep -rlE '#[[:space:]]*include <(stdio|stdlib|string|unistd|errno)\.h>' src/engine src/wire src/agent/in 2>/dev/null); do
	complain "$f is freestanding and includes libc"
done
[ $bad -eq 0 ] && echo "layers: $checked includes, all allowed"
exit $bad
