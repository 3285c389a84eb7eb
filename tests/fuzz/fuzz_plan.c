/* SPDX-License-Identifier: MIT */
/*
 * The planner with hostile bytes, for libFuzzer.
 *
 * Whatever the input: no fault, and where a copy is made its PC map has an
 * entry for each instruction that was generated and for nothing else, the copy
 * decodes, and it leaves for the addresses that the original would go to.
 */
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "plan/plan.h"

#define CHECK(x)                 \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	const struct plan_request *req;
	const struct ukp_site *site;
	const uint8_t *out;
	struct plan_insn insn;
};

static bool is_post(const struct walk *w, uint64_t to)
{
	return (w->site->flags & UKP_SITE_POST) && to == w->req->post;
}

static bool direct(const struct walk *w)
{
	const uint8_t flow = w->insn.flow;

	return flow == PLAN_FLOW_JMP || flow == PLAN_FLOW_JCC || flow == PLAN_FLOW_LOOP ||
	       flow == PLAN_FLOW_CALL;
}

/* The copy may go to where the original may go, to the post handler and to boundaries ahead. */
static void check_exit(const struct walk *w, uint64_t to, unsigned int off)
{
	const uint64_t next = w->site->addr + w->site->len;
	const uint64_t inside = to - w->site->slot;
	struct ukp_site_frame f;

	if (to == next || is_post(w, to) || (direct(w) && to == w->insn.target))
		return;
	CHECK(inside < w->site->slot_len && inside > off);
	CHECK(ukp_site_frame(w->site, to, 0, &f));
	CHECK(f.pc == w->insn.target);
}

/* One generated instruction at off; returns the offset behind it and behind its quad. */
static unsigned int step(const struct walk *w, unsigned int off)
{
	const uint8_t *p = w->out + off;
	ZydisDecodedInstruction z;
	ZydisDecoder d;
	struct ukp_site_frame f;
	uint64_t to;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	CHECK(ZYAN_SUCCESS(
		ZydisDecoderDecodeInstruction(&d, NULL, p, w->site->slot_len - off, &z)));
	if (off == 0 && w->insn.flow == PLAN_FLOW_NONE)
		return z.length; /* the copy itself */
	if (z.length == 6 && p[0] == 0xff && (p[1] == 0x25 || p[1] == 0x15) &&
	    off + 14U <= w->site->slot_len && !memcmp(p + 2, "\0\0\0\0", 4)) {
		memcpy(&to, p + 6, 8);
		check_exit(w, to, off);
		if (p[1] == 0x15) {
			CHECK(is_post(w, to));
			CHECK(ukp_site_frame(w->site, w->site->slot + off + 6, 0, &f));
			CHECK(f.sp == 136 && f.pc == w->site->addr + w->site->len);
		}
		return off + 14;
	}
	if (z.raw.imm[0].is_relative)
		check_exit(w, w->site->slot + off + z.length + (uint64_t)z.raw.imm[0].value.s, off);
	return off + z.length;
}

static void check_copy(const struct walk *w)
{
	const struct ukp_site *s = w->site;
	unsigned int off = 0, entries = 0;

	CHECK(s->len == w->insn.len && s->slot_len <= UKP_SLOT_SIZE && s->npc <= UKP_SITE_PCS);
	CHECK(!memcmp(s->orig, w->req->code, s->len));
	CHECK(!(s->flags & UKP_SITE_CONTROL) == (w->insn.flow == PLAN_FLOW_NONE));
	while (off < s->slot_len) {
		struct ukp_site_frame f;

		if (!ukp_site_frame(s, s->slot + off, 0, &f)) {
			/* int3 behind a stub is no place to be */
			CHECK(w->out[off] == 0xcc && off + 1 == s->slot_len);
			off++;
			continue;
		}
		CHECK(off || (f.pc == s->addr && f.sp == 0));
		entries++;
		off = step(w, off);
	}
	CHECK(off == s->slot_len);
	for (; off < UKP_SLOT_SIZE; off++)
		CHECK(w->out[off] == 0xcc);
	for (unsigned int i = 0; i < s->npc; i++) {
		CHECK(i == 0 || s->pc[i].off > s->pc[i - 1].off);
		uint8_t flags = s->pc[i].flags & 15;

		CHECK((flags & ~UKP_PC_SAVED) == UKP_PC_BEFORE ||
		      (flags & ~UKP_PC_SAVED) == UKP_PC_AFTER);
		CHECK(!(s->pc[i].flags >> UKP_PC_REG_SHIFT) || (flags & UKP_PC_SAVED));
	}
	CHECK(s->npc >= entries);
}

struct input {
	uint64_t addr, slot, post;
	uint16_t at;
	uint8_t npc, near;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t zero[sizeof(struct ukp_site)];
	struct ukp_site site = { 0 };
	uint8_t out[UKP_SLOT_SIZE];
	struct plan_request req;
	struct input in;
	struct ukp_site_frame f;
	struct walk w;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	data += sizeof(in);
	size -= sizeof(in);
	if (in.near & 1)
		in.slot = in.addr + (uint64_t)(int32_t)in.slot;
	if (in.near & 2)
		in.post = 0;
	if (in.near & 4)
		in.post = in.slot + (uint64_t)(int32_t)in.post;
	req = (struct plan_request){ data, size, in.addr, in.slot, in.post };
	w = (struct walk){ .req = &req, .site = &site, .out = out };

	enum plan_refusal why = plan_copy(&req, out, &site);
	enum plan_refusal seen = plan_decode(data, size, in.addr, &w.insn);

	CHECK(plan_errno(why) <= 0 && plan_reason(why)[0]);
	CHECK(w.insn.len <= size && w.insn.len <= UKP_INSN_MAX);
	if (why == PLAN_OK) {
		CHECK(seen == PLAN_OK);
		check_copy(&w);
	} else {
		CHECK(seen == why || why == PLAN_OUT_OF_REACH || why == PLAN_TOO_LONG);
		CHECK(!memcmp(&site, zero, sizeof(site)));
	}
	plan_boundary(data, size, in.addr, in.addr + in.at);
	site.npc = in.npc;
	ukp_site_frame(&site, in.slot + (in.at & 127), in.post, &f);
	return 0;
}
