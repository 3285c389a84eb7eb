#!/bin/bash
# SPDX-License-Identifier: MIT
# A plugin with probes of its own is loaded and unloaded: the library that it
# brought stays, for signals and threads are in it.  And its constructor, which
# runs under the dynamic linker's lock, may probe while other threads do.
. tests/e2e/lib.sh

WARN="-std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -O2 -g -Iinclude"

# shellcheck disable=SC2086
gcc $WARN -fPIC -shared -o "$T/plugin.so" tests/targets/plugin.c -L"$O" -lukprobes
# shellcheck disable=SC2086
gcc $WARN -fno-builtin -o "$T/host" tests/targets/plugin_host.c -ldl -pthread
export LD_LIBRARY_PATH=$O

"$T/host" "$T/plugin.so" >"$T/out" || fail "the host ended with $?: $(cat "$T/out")"
eq "$(cat "$T/out")" "100 hits" "the library comes and goes with the plugin"

# shellcheck disable=SC2086
gcc $WARN -fno-builtin -DREGISTERS -o "$T/probes" tests/targets/plugin_host.c -L"$O" -lukprobes \
	-ldl -pthread
"$T/probes" "$T/plugin.so" >"$T/out" || fail "the host ended with $?: $(cat "$T/out")"
eq "$(cat "$T/out")" "100 hits" "a plugin's constructor beside a thread that probes"
