# SPDX-License-Identifier: MIT
# The returns of all functions of a module at once, and their entries: what the work
# says is the same, and each entry is a return or a declared miss.
echo go | input go
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1

module libc
awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) printf "%d\t%s %.3f x%x\n", rand() * 1000, substr("quickbrownfoxjumps", rand() * 12 + 1, 5), rand() * 100, i * 77 }' | input table
build user-of-libc libc.c gcc -O1 -w -pthread && run -r -i "$T/in.go" -m END-OF-RUN returns-program "$BIN" &&
	RET=slot run -r -i "$T/in.go" -m END-OF-RUN returns-slot-program "$BIN"
[ -n "$QUICK" ] && return
build tour-of-libc libc-tour.c gcc -O1 -w -pthread -lutil && run -r -i "$T/in.go" -m END-OF-RUN -t 1200 returns-tour "$BIN"
run -r -i "$HERE/libc.bash" returns-bash bash -s one two three
run -r -i "$T/in.table" returns-sort sort -k2,2 -k1,1n

module libstdc++
flags=(-std=c++17 -O1 -Wno-deprecated-declarations -Wno-cpp -pthread)
build cxx11 cxx.cc g++ "${flags[@]}" -D_GLIBCXX_USE_CXX11_ABI=1 &&
	for RET in auto slot; do
		run -r -i "$T/in.go" -m END-OF-RUN "returns-$RET-strings" "$BIN"
	done

module libsqlite3
for RET in auto slot; do
	run -r -i "$HERE/sqlite.sql" -t 1800 -m END-OF-RUN "returns-$RET-script" sqlite3 one.db
done
RET=

module libcrypto
build user-of-crypto crypto.c gcc -O1 -w -lcrypto &&
	run -r -i "$T/in.go" -m END-OF-RUN -t 1800 returns-all "$BIN"

module python3.11
run -r -i "$T/in.go" -m END-OF-RUN -t 3600 returns-tour /usr/bin/python3.11 -X utf8 "$HERE/python-tour.py"
