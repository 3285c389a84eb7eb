# SPDX-License-Identifier: MIT
# libcrypto under a program of ours; again with its code for older processors.
module libcrypto

echo go | input go
build user-of-crypto crypto.c gcc -O1 -w -lcrypto || return
run -i "$T/in.go" -m END-OF-RUN -t 1800 all "$BIN"
[ -n "$QUICK" ] && return
run -i "$T/in.go" -m END-OF-RUN -t 1800 no-avx env OPENSSL_ia32cap='~0x1000000010000000:~0x20' "$BIN"
run -i "$T/in.go" -m END-OF-RUN -t 1800 no-vectors env OPENSSL_ia32cap='~0x1a00023600000000:~0xffffffff' "$BIN"
