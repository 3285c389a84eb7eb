# SPDX-License-Identifier: MIT
# perl: the interpreter, which is all in one file, under a script that is wide.
module perl

export PERL_HASH_SEED=0
echo go | input go
run -i "$T/in.go" -m END-OF-RUN -t 1800 script /usr/bin/perl "$HERE/perl.pl"
