# SPDX-License-Identifier: MIT
# gzip: its whole text, static and local functions as well.
module gzip

seq 1 700 | input numbers
head -c 6000 "$UKP" | input binary
head -c 3000 /dev/zero | input zeros
gzip -9 <"$T/in.numbers" | input packed
{ gzip -1 <"$T/in.binary"; gzip -9 <"$T/in.zeros"; } | input members
head -c 900 "$T/in.packed" | input torn

run -i "$T/in.numbers" best gzip -9c
run -i "$T/in.binary" fast gzip -1c
run -i "$T/in.packed" unpack gzip -dc
[ -n "$QUICK" ] && return
run -i "$T/in.zeros" default gzip -c
run -i "$T/in.members" members gzip -dcv
run -i "$T/in.torn" torn gzip -dc
run -i "$T/in.packed" test gzip -tv
run -i "$T/in.packed" list gzip -lv
run -l -i "$T/in.binary" launched gzip -6c --rsyncable
run -l help gzip --help
run -l version gzip -V
run -l missing gzip -kv nosuch.gz /dev/null
