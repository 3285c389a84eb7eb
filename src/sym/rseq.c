/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences of a file: code that the kernel takes a thread out of,
 * to an abort handler, when the thread was interrupted in it.
 *
 * Compilers know nothing of them; who writes one describes it by a struct
 * rseq_cs in a section of that name.  Its addresses are relocated: their values
 * are in the words themselves, or in relocations that have the addend.
 */
#include <stdlib.h>
#include <string.h>

#include "sym/internal.h"

#define MAX_RSEQS 65536

/* linux/rseq.h */
struct rseq_cs {
	uint32_t version, flags;
	uint64_t start_ip, post_commit_offset, abort_ip;
};

static void relocate(const struct sym_module *m, const Elf64_Shdr *sh, uint8_t *bytes)
{
	uint64_t off, avail;
	struct dynamic d;
	Elf64_Rela *r;

	if (!image_dynamic(m->img, 0, &d) || !image_offset(m->img, d.rela, &off, &avail))
		return;
	if (d.relasz < avail)
		avail = d.relasz;
	r = image_load(m->img, off, avail);
	for (uint64_t i = 0; r && i < avail / sizeof(*r); i++) {
		const uint64_t at = r[i].r_offset - sh->sh_addr;

		if (ELF64_R_TYPE(r[i].r_info) == R_X86_64_RELATIVE && sh->sh_size >= 8 &&
		    at <= sh->sh_size - 8)
			memcpy(bytes + at, &r[i].r_addend, 8);
	}
	free(r);
}

static void take(struct sym_module *m, const uint8_t *bytes, uint64_t size)
{
	uint64_t n = size / sizeof(struct rseq_cs);
	struct rseq_cs cs;

	if (n > MAX_RSEQS)
		n = MAX_RSEQS;
	m->rseq = calloc(n, sizeof(*m->rseq));
	for (uint64_t i = 0; m->rseq && i < n; i++) {
		memcpy(&cs, bytes + i * sizeof(cs), sizeof(cs));
		if (!cs.start_ip || !cs.post_commit_offset)
			continue;
		m->rseq[m->nr_rseqs++] = (struct sym_rseq){
			.start = cs.start_ip + m->bias,
			.end = cs.start_ip + cs.post_commit_offset + m->bias,
			.abort = cs.abort_ip + m->bias,
		};
	}
}

static void load(struct sym_module *m)
{
	const Elf64_Shdr *sh = m->img ? image_section(m->img, "__rseq_cs") : NULL;
	uint8_t *bytes = sh ? image_load_section(m->img, sh) : NULL;

	if (bytes) {
		relocate(m, sh, bytes);
		take(m, bytes, sh->sh_size);
	}
	free(bytes);
}

size_t sym_rseqs(struct sym_module *m, const struct sym_rseq **ret)
{
	if (!m->loaded_rseqs)
		load(m);
	m->loaded_rseqs = true;
	*ret = m->rseq;
	return m->nr_rseqs;
}
