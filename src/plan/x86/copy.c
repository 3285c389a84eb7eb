/* SPDX-License-Identifier: MIT */
/* The out-of-line copy of one instruction, in a slot of its own. */
#include "plan/x86/gen.h"

#include <string.h>

enum plan_refusal plan_copy(const struct plan_request *req, uint8_t out[UKP_SLOT_SIZE],
                            struct ukp_site *site)
{
	uint8_t buf[UKP_SLOT_SIZE];
	struct gen_pc pc[UKP_SITE_PCS];
	struct gen g = {
		.buf = buf,
		.size = sizeof(buf),
		.at = req->slot,
		.base = req->addr,
		.pc = pc,
		.room = UKP_SITE_PCS,
		.code = req->code,
		.addr = req->addr,
		.exit = req->post ? GEN_POST : GEN_BACK,
		.post = req->post,
		.scratch = true,
	};
	enum plan_refusal why;

	why = x86_decode(req->code, req->avail, req->addr, &g.x);
	if (why)
		return why;
	memset(buf, 0xcc, sizeof(buf));
	gen_insn(&g);
	if (g.why)
		return g.why;
	memcpy(out, buf, sizeof(buf));
	site->addr = req->addr;
	site->slot = req->slot;
	site->len = g.x.p.len;
	site->slot_len = (uint8_t)g.n;
	site->npc = (uint8_t)g.npc;
	site->flags &= (uint8_t) ~(UKP_SITE_CONTROL | UKP_SITE_POST);
	if (g.x.p.flow != PLAN_FLOW_NONE)
		site->flags |= UKP_SITE_CONTROL;
	else if (req->post)
		site->flags |= UKP_SITE_POST;
	memset(site->orig, 0, sizeof(site->orig));
	memcpy(site->orig, req->code, site->len);
	memset(site->pc, 0, sizeof(site->pc));
	for (unsigned int i = 0; i < g.npc; i++)
		site->pc[i] = (struct ukp_pc){
			.off = (uint8_t)pc[i].off,
			.flags = pc[i].flags,
			.sp_adj = (int16_t)(8 * pc[i].words),
			.delta = pc[i].delta,
		};
	return PLAN_OK;
}
