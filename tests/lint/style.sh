#!/bin/bash
# SPDX-License-Identifier: MIT
# Form: clang-format, sizes of files and functions, an SPDX line, no left-over
# marks.  Exceptions are listed here with their reason.
set -u
cd "$(dirname "$0")/../.."
bad=0
complain() {
	echo "style: $*" >&2
	bad=1
}
declare -A long=()

# Not by git: the tree may be one that was unpacked, or somebody else's.
mapfile -t files < <(find src include tests bench samples -name '*.[ch]' | sort)
[ ${#files[@]} -gt 50 ] || complain "only ${#files[@]} files seen"
for f in "${files[@]}"; do
	head -n 1 "$f" | grep -q 'SPDX-License-Identifier: MIT' || complain "$f has no SPDX line"
	lines=$(wc -l <"$f")
	[[ $f == tests/* || $lines -le 500 || -n ${long[$f]-} ]] || complain "$f has $lines lines (500)"
done
said=$(clang-format --dry-run -Werror "${files[@]}" 2>&1) || complain "clang-format: $(grep -c error: <<<"$said") places, first: $(head -n 1 <<<"$said")"
marks=$(grep -rnIE --exclude=style.sh --exclude-dir=corpus '\b(TODO|FIXME|XXX|HACK)\b' src include tests bench samples)
[ -z "$marks" ] || complain "left-over marks: $marks"

# A function's body, from a brace in the first column to the next.
while read -r line; do
	complain "$line"
done < <(awk '
	FNR == 1 { open = 0 }
	/^\{/ { open = FNR }
	/^\}/ { if (open && FNR - open > 62) print FILENAME ":" open ": a function of " FNR - open " lines (60)"; open = 0 }
' $(find src -name '*.c'))
[ $bad -eq 0 ] && echo "style: ${#files[@]} files"
exit $bad
