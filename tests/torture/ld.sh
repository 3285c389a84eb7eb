# SPDX-License-Identifier: MIT
# The dynamic linker, in programs that load more, bind late, throw and start threads.
module ld-linux-x86-64

echo go | input go
build user-of-libc libc.c gcc -O1 -w -pthread && run -i "$T/in.go" -m END-OF-RUN program "$BIN"
run -l libraries /usr/bin/python3.11 -c 'import ctypes, ssl, sqlite3, decimal; print(ctypes.CDLL("libm.so.6").abs(-5))'
run -l late env LD_BIND_NOW= bash -c 'read -r x; echo "$x"; (echo sub); exec 3>&1; enable -n cd; echo "${BASH_VERSINFO[0]}"'
