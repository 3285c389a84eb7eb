#!/bin/bash
# SPDX-License-Identifier: MIT
# gdb's script reads the agent's memory by layouts of its own: they are those of src/wire.
set -u
cd "$(dirname "$0")/../.."
gcc -std=gnu11 -Isrc -Iinclude -fsyntax-only -x c - <<EOF && echo "gdb: its layouts are those of src/wire"
#include <stddef.h>
#include "wire/ctl.h"
#include "wire/detour.h"
#include "wire/instance.h"
$(sed -n 's/^\([A-Z_, ]*\) = \([0-9A-Fx, ]*\)$/\1 = \2/p' gdb/ukprobes.py | awk -F ' = ' '
	{ n = split($1, name, ", "); split($2, v, ", ")
	  for (i = 1; i <= n; i++) print "#define GDB_" name[i] " " v[i] "ull" }')
#define IS(a, b) _Static_assert((a) == (b), #a)
#define AT(type, field, off) IS(offsetof(struct type, field), off)
IS(UKP_CTL_MAGIC, GDB_MAGIC);
IS(UKP_CTL_VERSION, GDB_VERSION);
IS(UKP_STUB_SIZE, GDB_STUB_SIZE);
IS(UKP_STUB_WAY_IN, GDB_WAY_IN);
IS(UKP_STUB_CALL, GDB_STUB_CALL);
IS(UKP_PC_CALLS, GDB_PC_CALLS);
IS(sizeof(struct ukp_instance), GDB_INSTANCE_SIZE);
IS(UKP_INST_LIVE, GDB_LIVE);
IS(UKP_SLOT_SIZE, GDB_SLOT_SIZE);
IS(UKP_SITE_PCS, GDB_SITE_PCS);
IS(sizeof(struct ukp_detour), GDB_DETOUR_SIZE);
IS(UKP_WINDOW_INSNS, GDB_WINDOW_INSNS);
IS(UKP_DETOUR_FRAME, 8 * GDB_FRAME_WORDS);
IS(UKP_PC_BEFORE, GDB_PC_BEFORE);
IS(UKP_PC_AFTER, GDB_PC_AFTER);
IS(UKP_PC_SAVED, GDB_PC_SAVED);
AT(ukp_ctl, version, 8);
AT(ukp_ctl, priv, 32);
AT(ukp_ctl, sites, 40);
AT(ukp_ctl, stubs, 48);
AT(ukp_ctl, nr_instances, 64);
AT(ukp_ctl, detours, 96);
AT(ukp_priv, off_instances, 4096);
AT(ukp_instance, func, 32);
AT(ukp_instance, state, 56);
AT(ukp_site, npc, 22);
AT(ukp_site, pc, 72);
AT(ukp_detour, npc, 24);
AT(ukp_detour, insn, 36);
AT(ukp_detour, next, 84);
AT(ukp_detour_shape, pc, 8);
EOF
