/* SPDX-License-Identifier: MIT */
/*
 * Tables say of an opcode what follows it.  An opcode is in a table only where
 * each of its encodings is valid, so that no decision is taken here that Zydis
 * would take otherwise; all others, and all rare prefixes, are left to it.
 */
#include "plan/x86/brief.h"

#include <string.h>

#include <Zydis/Zydis.h>

#include "base/pause.h"
#include "wire/site.h"

enum {
	SLOW = 0,
	OK = 1,
	M = 2,    /* modrm */
	I8 = 4,   /* imm8 */
	IZ = 8,   /* imm32, with prefix 66 imm16 */
	IV = 16,  /* imm32, with 66 imm16, with REX.W imm64 */
	REL = 32, /* the immediate is relative */
	REP = 64, /* F2 and F3 are allowed */
	I32 = 128,
};

#define ALU(x)                                                                                 \
	[x] = OK | M, [x + 1] = OK | M, [x + 2] = OK | M, [x + 3] = OK | M, [x + 4] = OK | I8, \
	[x + 5] = OK | IZ

static const uint8_t one_byte[256] = {
	ALU(0x00),
	ALU(0x08),
	ALU(0x10),
	ALU(0x18),
	ALU(0x20),
	ALU(0x28),
	ALU(0x30),
	ALU(0x38),
	[0x50 ... 0x5f] = OK,
	[0x63] = OK | M,
	[0x68] = OK | IZ,
	[0x69] = OK | M | IZ,
	[0x6a] = OK | I8,
	[0x6b] = OK | M | I8,
	[0x70 ... 0x7f] = OK | I8 | REL,
	[0x80] = OK | M | I8,
	[0x81] = OK | M | IZ,
	[0x83] = OK | M | I8,
	[0x84 ... 0x8b] = OK | M,
	[0x8d] = OK | M,
	[0x90] = OK | REP,
	[0x91 ... 0x99] = OK,
	[0xa4 ... 0xa7] = OK | REP,
	[0xa8] = OK | I8,
	[0xa9] = OK | IZ,
	[0xaa ... 0xaf] = OK | REP,
	[0xb0 ... 0xb7] = OK | I8,
	[0xb8 ... 0xbf] = OK | IV,
	[0xc0 ... 0xc1] = OK | M | I8,
	[0xc3] = OK | REP,
	[0xc6] = OK | M | I8,
	[0xc7] = OK | M | IZ,
	[0xc9] = OK,
	[0xcc] = OK,
	[0xd0 ... 0xd3] = OK | M,
	[0xe8 ... 0xe9] = OK | I32 | REL,
	[0xeb] = OK | I8 | REL,
	[0xf6 ... 0xf7] = OK | M, /* and an immediate with /0 and /1 */
	[0xfe ... 0xff] = OK | M,
};

static const uint8_t two_byte[256] = {
	[0x05] = OK,
	[0x0b] = OK,
	[0x10 ... 0x11] = OK | M | REP,
	[0x14 ... 0x15] = OK | M,
	[0x1f] = OK | M,
	[0x28 ... 0x29] = OK | M,
	[0x2e ... 0x2f] = OK | M,
	[0x40 ... 0x4f] = OK | M,
	[0x51] = OK | M | REP,
	[0x54 ... 0x57] = OK | M,
	[0x58 ... 0x5a] = OK | M | REP,
	[0x5c ... 0x5f] = OK | M | REP,
	[0x6e ... 0x6f] = OK | M,
	[0x7e ... 0x7f] = OK | M,
	[0x80 ... 0x8f] = OK | I32 | REL,
	[0x90 ... 0x9f] = OK | M,
	[0xa2] = OK,
	[0xa3] = OK | M,
	[0xa4] = OK | M | I8,
	[0xa5] = OK | M,
	[0xab] = OK | M,
	[0xac] = OK | M | I8,
	[0xad] = OK | M,
	[0xaf] = OK | M,
	[0xb0 ... 0xb1] = OK | M,
	[0xb3] = OK | M,
	[0xb6 ... 0xb7] = OK | M,
	[0xbb ... 0xbf] = OK | M,
	[0xc0 ... 0xc1] = OK | M,
	[0xc6] = OK | M | I8,
	[0xc8 ... 0xcf] = OK,
	[0xd4] = OK | M,
	[0xdb] = OK | M,
	[0xdf] = OK | M,
	[0xeb] = OK | M,
	[0xef] = OK | M,
	[0xfa ... 0xfe] = OK | M,
};

/* Groups and forms of which only a part is as the table says. */
static bool excepted(const struct brief *b)
{
	const unsigned int reg = b->modrm >> 3 & 7;

	if (b->map == BRIEF_0F)
		return false;
	switch (b->op) {
	case 0x8d:
		return b->modrm >= 0xc0;
	case 0xc0 ... 0xc1:
	case 0xd0 ... 0xd3:
		return reg == 6;
	case 0xc6 ... 0xc7:
		return reg != 0;
	case 0xf6 ... 0xf7:
		return reg == 1;
	case 0xfe:
		return reg > 1;
	case 0xff:
		return reg == 3 || reg == 5 || reg == 7;
	}
	return false;
}

struct reader {
	const uint8_t *p;
	size_t left;
};

static bool get(struct reader *r, unsigned int size, int64_t *v)
{
	if (r->left < size)
		return false;
	switch (size) {
	case 1:
		*v = (int8_t)r->p[0];
		break;
	case 2:
		*v = (int16_t)(r->p[0] | r->p[1] << 8);
		break;
	case 4: {
		int32_t w;

		memcpy(&w, r->p, 4);
		*v = w;
		break;
	}
	default:
		memcpy(v, r->p, 8);
	}
	r->p += size;
	r->left -= size;
	return true;
}

static bool get_modrm(struct reader *r, struct brief *b)
{
	unsigned int size;
	int64_t v;

	if (!get(r, 1, &v))
		return false;
	b->has_modrm = true;
	b->modrm = (uint8_t)v;
	if (b->modrm >= 0xc0)
		return true;
	if ((b->modrm & 7) == 4) {
		if (!get(r, 1, &v))
			return false;
		b->sib = (uint8_t)v;
	}
	size = b->modrm >= 0x80 ? 4 : b->modrm >= 0x40 ? 1 : 0;
	if (b->modrm < 0x40 && ((b->modrm & 7) == 5 || ((b->modrm & 7) == 4 && (b->sib & 7) == 5)))
		size = 4;
	if (!size)
		return true;
	if (!get(r, size, &v))
		return false;
	b->disp = (int32_t)v;
	return true;
}

static unsigned int immediate_size(const struct brief *b, unsigned int kind, bool p66)
{
	const bool wide = b->rex & 8;

	if (kind & I8)
		return 1;
	if (kind & I32)
		return 4;
	if (kind & IZ)
		return p66 && !wide ? 2 : 4;
	if (kind & IV)
		return wide ? 8 : p66 ? 2 : 4;
	if (b->map == BRIEF_ONE && (b->op & 0xfe) == 0xf6 && (b->modrm >> 3 & 7) == 0)
		return b->op == 0xf6 ? 1 : p66 && !wide ? 2 : 4;
	return 0;
}

static bool decode_fast(const uint8_t *code, size_t avail, struct brief *b)
{
	struct reader r = { code, avail < UKP_INSN_MAX ? avail : UKP_INSN_MAX };
	bool p66 = false, rep = false;
	unsigned int kind;

	for (; r.left && (*r.p == 0x66 || *r.p == 0xf2 || *r.p == 0xf3); r.p++, r.left--) {
		p66 |= *r.p == 0x66;
		rep |= *r.p != 0x66;
	}
	if (r.left && (*r.p & 0xf0) == 0x40) {
		b->rex = *r.p++;
		r.left--;
	}
	if (!r.left)
		return false;
	b->op = *r.p++;
	r.left--;
	kind = one_byte[b->op];
	if (b->op == 0x0f && r.left) {
		b->map = BRIEF_0F;
		b->op = *r.p++;
		r.left--;
		kind = two_byte[b->op];
	}
	if (kind == SLOW || (rep && !(kind & REP)) || (rep && p66) || (p66 && (kind & REL)))
		return false;
	if ((kind & M) && !get_modrm(&r, b))
		return false;
	if (excepted(b))
		return false;
	b->relative = kind & REL;
	b->imm_size = (uint8_t)immediate_size(b, kind, p66);
	if (b->imm_size && !get(&r, b->imm_size, &b->imm))
		return false;
	b->len = (uint8_t)(r.p - code);
	return true;
}

bool brief_decode_slow(const uint8_t *code, size_t avail, uint64_t addr, struct brief *b)
{
	ZydisDecodedInstruction z;
	ZydisDecoder d;

	memset(b, 0, sizeof(*b));
	b->addr = addr;
	if (!avail ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		    &d, NULL, code, avail < UKP_INSN_MAX ? avail : UKP_INSN_MAX, &z)))
		return false;
	b->len = z.length;
	b->op = z.opcode;
	b->map = BRIEF_OTHER;
	if (z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		b->map = z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? BRIEF_ONE
		         : z.opcode_map == ZYDIS_OPCODE_MAP_0F    ? BRIEF_0F
		                                                  : BRIEF_OTHER;
	b->rex = (uint8_t)(z.raw.rex.W << 3 | z.raw.rex.R << 2 | z.raw.rex.X << 1 | z.raw.rex.B);
	if (z.attributes & ZYDIS_ATTRIB_HAS_MODRM) {
		b->has_modrm = true;
		b->modrm = (uint8_t)(z.raw.modrm.mod << 6 | z.raw.modrm.reg << 3 | z.raw.modrm.rm);
		b->sib = (uint8_t)(z.raw.sib.scale << 6 | z.raw.sib.index << 3 | z.raw.sib.base);
	}
	b->disp = (int32_t)z.raw.disp.value;
	b->imm_size = (uint8_t)(z.raw.imm[0].size / 8);
	b->imm = z.raw.imm[0].value.s;
	if (b->imm_size == 1)
		b->imm = (int8_t)b->imm;
	else if (b->imm_size == 2)
		b->imm = (int16_t)b->imm;
	b->relative = z.raw.imm[0].is_relative;
	for (unsigned int i = 0; i < z.raw.prefix_count; i++)
		b->odd |= z.raw.prefixes[i].value == 0x67 || z.raw.prefixes[i].value == 0x64 ||
		          z.raw.prefixes[i].value == 0x65;
	/* Intel and AMD disagree about the length. */
	return !(b->relative && b->imm_size == 2);
}

bool brief_decode(const uint8_t *code, size_t avail, uint64_t addr, struct brief *b)
{
	pause_point();
	memset(b, 0, sizeof(*b));
	b->addr = addr;
	return decode_fast(code, avail, b) || brief_decode_slow(code, avail, addr, b);
}
