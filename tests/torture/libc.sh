# SPDX-License-Identifier: MIT
# libc under the shell and its tools, and under a program of ours.
module libc

awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) printf "%d\t%s %.3f x%x\n", rand() * 1000, substr("quickbrownfoxjumps", rand() * 12 + 1, 5), rand() * 100, i * 77 }' | input table
echo go | input go
run -i "$HERE/libc.bash" bash bash -s one two three
build user-of-libc libc.c gcc -O1 -w -pthread && run -i "$T/in.go" -m END-OF-RUN program "$BIN"
[ -n "$QUICK" ] && return
run -l program-launched "$BIN"
build tour-of-libc libc-tour.c gcc -O1 -w -pthread -lutil && run -i "$T/in.go" -m END-OF-RUN -t 1200 tour "$BIN"
# Functions that are there for each kind of processor.
build strings-of-libc libc-strings.c gcc -O1 -w -fno-builtin &&
	for without in none AVX512VL,-AVX512BW AVX512VL,-AVX2 AVX512VL,-AVX2,-SSE4_2,-SSE4_1,-SSSE3; do
		run -i "$T/in.go" -m END-OF-RUN -t 1200 "strings-without-$without" \
			env "GLIBC_TUNABLES=glibc.cpu.hwcaps=-$without" "$BIN"
	done
run -i "$T/in.table" sort sort -k2,2 -k1,1n
run -i "$T/in.table" sort-locale env LC_ALL=C.UTF-8 sort -f -u -t x -k 2
run -i "$T/in.table" sed sed -E -e 's/([a-z]+) ([0-9.]+)/\2 \U\1/g; /^1/d; y/abc/xyz/; 3i\' -e 'inserted' -e '$!N; P; D'
run -i "$T/in.table" awk awk '{ n[$2 % 7] += $1; gsub(/[aeiou]/, "<&>"); s = s sprintf("%5.1f|%-8s|%05d", $3, $2, $1) } END { for (i = 0; i < 7; i++) print i, n[i]; print length(s), substr(s, 100, 50), toupper(s) ~ /FOX/; "date -d @0 +%F" | getline d; print d, log(2), sin(1), exp(1), int("12x") }'
run -i "$T/in.table" grep grep -nE '^[0-9]{2,3}.(qu|br)[^ ]* [0-9]+\.(.)\2'
run -i "$T/in.table" tac tac
run -i "$T/in.table" md5sum md5sum
run -i "$T/in.table" numfmt numfmt --to=iec --field=1 --invalid=ignore
