/* SPDX-License-Identifier: MIT */
/* Random instructions, and which of them can't be compared. */
#ifndef TESTS_PLAN_NOISE_H
#define TESTS_PLAN_NOISE_H

#include "unit/plan/trial.h"

/* What doesn't do the same twice, or would change the test itself. */
static inline bool fickle(const ZydisDecodedInstruction *z)
{
	static const ZydisMnemonic no[] = {
		ZYDIS_MNEMONIC_RDTSC,   ZYDIS_MNEMONIC_RDTSCP,   ZYDIS_MNEMONIC_RDPMC,
		ZYDIS_MNEMONIC_RDPRU,   ZYDIS_MNEMONIC_RDRAND,   ZYDIS_MNEMONIC_RDSEED,
		ZYDIS_MNEMONIC_RDPID,   ZYDIS_MNEMONIC_CPUID,    ZYDIS_MNEMONIC_XGETBV,
		ZYDIS_MNEMONIC_SYSCALL, ZYDIS_MNEMONIC_WRFSBASE, ZYDIS_MNEMONIC_WRGSBASE,
		ZYDIS_MNEMONIC_WRPKRU,  ZYDIS_MNEMONIC_VMCALL,   ZYDIS_MNEMONIC_VMMCALL,
		ZYDIS_MNEMONIC_SGDT,    ZYDIS_MNEMONIC_SIDT,     ZYDIS_MNEMONIC_SLDT,
		ZYDIS_MNEMONIC_STR,     ZYDIS_MNEMONIC_SMSW,     ZYDIS_MNEMONIC_MONITORX,
		ZYDIS_MNEMONIC_MWAITX,  ZYDIS_MNEMONIC_UMONITOR, ZYDIS_MNEMONIC_UMWAIT,
		ZYDIS_MNEMONIC_TPAUSE,  ZYDIS_MNEMONIC_LFS,      ZYDIS_MNEMONIC_LGS,
		ZYDIS_MNEMONIC_LSS,     ZYDIS_MNEMONIC_POPF,     ZYDIS_MNEMONIC_POPFQ,
		ZYDIS_MNEMONIC_GETSEC,  ZYDIS_MNEMONIC_ENCLS,    ZYDIS_MNEMONIC_MCOMMIT,
	};
	const uint8_t op = z->opcode;

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (z->mnemonic == no[i])
			return true;
	if (z->meta.category == ZYDIS_CATEGORY_XSAVE || z->meta.category == ZYDIS_CATEGORY_XSAVEOPT)
		return true;
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	/* mov to and pop of a segment register */
	return (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && op == 0x8e) ||
	       (z->opcode_map == ZYDIS_OPCODE_MAP_0F && (op == 0xa1 || op == 0xa9));
}

/* Bytes that are an instruction more often than plain noise is. */
static inline void noise(uint8_t *code)
{
	static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0xf0, 0x67, 0x2e, 0x3e, 0x64, 0x65 };
	uint8_t *p = code, *start;

	for (int i = 0; i < 15; i++)
		code[i] = (uint8_t)(rnd() >> 24);
	while (!below(3) && p < code + 3)
		*p++ = prefixes[below(sizeof(prefixes))];
	if (!below(3))
		*p++ = 0x40 | (uint8_t)below(16);
	start = p;
	switch (below(8)) {
	case 0 ... 2:
		p += 1;
		break;
	case 3:
		*p = 0x0f;
		p += 2;
		break;
	case 4:
		p[0] = 0x0f;
		p[1] = below(2) ? 0x38 : 0x3a;
		p += 3;
		break;
	case 5:
		p = start = code;
		p[0] = 0xc5;
		p += 3;
		break;
	case 6:
		p = start = code;
		p[0] = 0xc4;
		p[1] = (uint8_t)((p[1] & 0xe0) | (1 + below(3)));
		p += 4;
		break;
	case 7:
		p = start = code;
		p[0] = 0x62;
		p[1] = (uint8_t)((p[1] & 0xf0) | (1 + below(3)));
		p[2] |= 4;
		p += 5;
		break;
	}
	if (!below(6))
		*p = (uint8_t)((*p & 0x38) | 5); /* rip */
}

#endif
