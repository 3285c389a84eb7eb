/* SPDX-License-Identifier: MIT */
/*
 * The facts of an ELF file of any content.
 *
 * From nothing a fuzzer hardly finds its way through the headers: unless the
 * input is an ELF file it becomes the inside of one, whose headers are good.
 */
#include "sym/facts_in.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 1024
#define MAX_INPUT 65536

static const struct {
	uint32_t type, flags;
} segments[] = {
	{ PT_LOAD, PF_R | PF_X },
	{ PT_DYNAMIC, PF_R },
	{ PT_GNU_EH_FRAME, PF_R },
};

/*
 * One segment with everything.  Of the input the first eighth is PT_DYNAMIC's
 * relocations, and so on; frames are all of it, from its start.
 */
static uint8_t *wrap(const uint8_t *data, size_t size, bool fixed)
{
	const uint64_t part = size / 8;
	uint8_t *buf = calloc(1, HEAD + size);
	Elf64_Ehdr eh = { .e_type = fixed ? ET_EXEC : ET_DYN,
		          .e_machine = EM_X86_64,
		          .e_phoff = sizeof(eh),
		          .e_phnum = 3,
		          .e_phentsize = sizeof(Elf64_Phdr) };
	const Elf64_Dyn dyn[] = {
		{ DT_RELA, { HEAD } },
		{ DT_RELASZ, { part } },
		{ DT_JMPREL, { HEAD + part } },
		{ DT_PLTRELSZ, { part } },
		{ DT_RELR, { HEAD + 2 * part } },
		{ DT_RELRSZ, { part } },
		{ DT_SYMTAB, { HEAD + 3 * part } },
		{ DT_INIT, { HEAD } },
	};

	if (!buf)
		abort();
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(buf, &eh, sizeof(eh));
	for (unsigned int i = 0; i < 3; i++) {
		const uint64_t off = i == 1 ? 512 : i == 2 ? 960 : 0;
		const uint64_t len = i == 1 ? sizeof(dyn) : i == 2 ? 12 : HEAD + size;
		const Elf64_Phdr ph = {
			segments[i].type, segments[i].flags, off, off, off, len, len, PAGE
		};

		memcpy(buf + sizeof(eh) + i * sizeof(ph), &ph, sizeof(ph));
	}
	memcpy(buf + 512, dyn, sizeof(dyn));
	memcpy(buf + 960, "\x01\x1b\x03\x3b\x3c\x00\x00\x00", 8); /* frames 60 bytes on */
	memcpy(buf + HEAD, data, size);
	return buf;
}

static bool in_code(const struct sym_facts *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nr_code; i++)
		if (addr - f->code[i].addr < f->code[i].size)
			return true;
	return false;
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check(struct facts *facts)
{
	struct sym_facts *f = &facts->pub;
	uint8_t buf[64];

	for (size_t i = 1; i < f->nr_code; i++)
		must(f->code[i].addr >= f->code[i - 1].addr + f->code[i - 1].size);
	for (size_t i = 0; i < f->nr_funcs; i++) {
		must(f->func[i].start < f->func[i].end && in_code(f, f->func[i].start) &&
		     in_code(f, f->func[i].end - 1));
		must(!i || f->func[i].start > f->func[i - 1].start);
		for (uint64_t at = 0; at < 64; at += 7)
			sym_facts_bare_stack(f, f->func[i].end - at);
	}
	for (size_t i = 0; i < f->nr_relocs; i++)
		must(in_code(f, f->reloc[i].target) &&
		     (!i || f->reloc[i].place >= f->reloc[i - 1].place));
	for (size_t i = 0; i < f->nr_extra; i++) {
		must(in_code(f, f->extra[i]));
		must(sym_facts_read(f, f->extra[i], buf, sizeof(buf)) <= sizeof(buf));
	}
}

static void make(const uint8_t *data, size_t size)
{
	struct facts *f = calloc(1, sizeof(*f));
	struct symtab symbols = { 0 };
	struct fdes fdes = { 0 };

	if (!f)
		abort();
	if (!image_from_buffer(&f->img, data, size, false)) {
		fdes_load(&fdes, f->img);
		symtab_load(&symbols, f->img, NULL, 0, &fdes);
		if (!facts_symbols(f, &symbols) && !facts_make(f))
			check(f);
	}
	symtab_free(&symbols);
	free(fdes.fde);
	sym_facts_free(&f->pub);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file;

	if (size < 16 || size > MAX_INPUT)
		return 0;
	if (!memcmp(data, ELFMAG, SELFMAG)) {
		make(data, size);
		return 0;
	}
	file = wrap(data + 1, size - 1, data[0] & 1);
	make(file, HEAD + size - 1);
	free(file);
	return 0;
}
