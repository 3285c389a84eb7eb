/* SPDX-License-Identifier: MIT */
/* The facts of files that no linker makes. */
#include "facts_help.h"

#include "sym/facts_in.h"

/*
 * Link time = offset: headers, code at 0x1000, .eh_frame at 0x2000, exception
 * tables at 0x3000, PT_DYNAMIC at 0x4000, relocations at 0x5000, and words
 * that may be written from 0x6000 on.
 */
enum {
	CODE = 0x1000,
	FRAMES = 0x2000,
	TABLES = 0x3000,
	DYNAMIC = 0x4000,
	RELOCS = 0x5000,
	DATA = 0x6000,
	SIZE = 0x8000,
};

struct file {
	uint8_t b[SIZE];
	size_t at;
};

static void put(struct file *f, uint64_t v, unsigned int size)
{
	assert_true(f->at + size <= SIZE);
	memcpy(f->b + f->at, &v, size);
	f->at += size;
}

static void put_bytes(struct file *f, const void *bytes, size_t n)
{
	memcpy(f->b + f->at, bytes, n);
	f->at += n;
}

static Elf64_Ehdr *header(struct file *f)
{
	return (Elf64_Ehdr *)f->b;
}

static void start_file(struct file *f)
{
	Elf64_Ehdr eh = { .e_type = ET_DYN,
		          .e_machine = EM_X86_64,
		          .e_phoff = 64,
		          .e_phnum = 5,
		          .e_phentsize = sizeof(Elf64_Phdr),
		          .e_shentsize = sizeof(Elf64_Shdr) };
	const Elf64_Phdr ph[5] = {
		{ PT_LOAD, PF_R, 0, 0, 0, CODE, CODE, PAGE },
		{ PT_LOAD, PF_R | PF_X, CODE, CODE, CODE, 0x1000, 0x1000, PAGE },
		{ PT_LOAD, PF_R, FRAMES, FRAMES, FRAMES, DATA - FRAMES, DATA - FRAMES, PAGE },
		{ PT_LOAD, PF_R | PF_W, DATA, DATA, DATA, SIZE - DATA, SIZE - DATA, PAGE },
		{ PT_GNU_EH_FRAME, PF_R, FRAMES, FRAMES, FRAMES, 12, 12, 4 },
	};

	memset(f, 0, sizeof(*f));
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(f->b, &eh, sizeof(eh));
	memcpy(f->b + 64, ph, sizeof(ph));
	f->at = FRAMES;
	put(f, 0x3b031b01, 4); /* version 1; eh_frame_ptr: pcrel sdata4 */
	put(f, 12, 4);
	f->at = FRAMES + 16;
}

/* Augmentation "zLR", LSDA absolute in 8 bytes, pointers too; CFA = rsp + 8. */
static size_t put_cie(struct file *f)
{
	static const uint8_t rest[] = { 1, 'z', 'L', 'R', 0, 1, 0x78, 16, 2, 4, 4, 0x0c, 7, 8 };
	size_t start = f->at;

	put(f, 4 + sizeof(rest), 4);
	put(f, 0, 4);
	put_bytes(f, rest, sizeof(rest));
	return start;
}

static void put_fde(struct file *f, size_t cie, uint64_t start, uint64_t len, uint64_t lsda,
                    const void *program, size_t n)
{
	put(f, 4 + 16 + 1 + 8 + n, 4);
	put(f, f->at - cie, 4);
	put(f, start, 8);
	put(f, len, 8);
	put(f, 8, 1);
	put(f, lsda, 8);
	put_bytes(f, program, n);
}

static int try_facts(struct file *file, struct facts **ret)
{
	struct facts *f = calloc(1, sizeof(*f));
	const struct symtab none = { 0 };
	int r;

	*ret = NULL;
	assert_non_null(f);
	assert_int_equal(image_from_buffer(&f->img, file->b, SIZE, false), 0);
	assert_int_equal(facts_symbols(f, &none), 0);
	r = facts_make(f);
	if (r)
		sym_facts_free(&f->pub);
	else
		*ret = f;
	return r;
}

static struct facts *make(struct file *file)
{
	struct facts *f;

	assert_int_equal(try_facts(file, &f), 0);
	facts_check(&f->pub);
	return f;
}

static void a_table_in_each_encoding_gives_its_pads(void **state)
{
	static const struct {
		uint8_t bytes[24];
		size_t n;
		uint64_t pad;
	} t[] = {
		{ { 0xff, 0xff, 0x01, 4, 0, 5, 0x20, 0 }, 8, CODE + 0x20 },
		{ { 0xff, 0xff, 0x03, 13, 0, 0, 0, 0, 5, 0, 0, 0, 0x30, 0, 0, 0, 0 },
		  17,
		  CODE + 0x30 },
		{ { 0x03, 0, 0x11, 0, 0, 0x9b, 9, 0x01, 4, 0, 5, 0x20, 1 }, 13, 0x1120 },
		/* relative to where it stands */
		{ { 0x1b, 0xff, 0xdf, 0xff, 0xff, 0xff, 0x01, 4, 0, 5, 0x20, 0 }, 12, CODE + 0x20 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct file file;
		struct facts *f;

		start_file(&file);
		put_fde(&file, put_cie(&file), CODE, 0x40, TABLES, "", 0);
		memcpy(file.b + TABLES, t[i].bytes, t[i].n);
		f = make(&file);
		assert_int_equal(f->pub.nr_pads, 1);
		assert_int_equal(f->extra[0], t[i].pad);
		assert_int_equal(f->pub.nr_funcs, 1);
		assert_false(f->func[0].part);
		sym_facts_free(&f->pub);
	}
}

static void a_function_whose_table_makes_no_sense_is_none(void **state)
{
	static const struct {
		uint8_t bytes[16];
		size_t n;
		uint64_t lsda;
	} t[] = {
		{ { 0xff, 0xff, 0x01, 4, 0, 5, 0xff, 0xff }, 8, TABLES },    /* cut */
		{ { 0xff, 0xff, 0x01, 5, 0, 5, 0xff, 0x7f, 0 }, 9, TABLES }, /* no code there */
		{ { 0xff, 0xff, 0x1b, 4, 0, 5, 0x20, 0 }, 8, TABLES },       /* encoding */
		{ { 0xff, 0xff, 0x0f, 4, 0, 5, 0x20, 0 }, 8, TABLES },       /* encoding */
		{ { 0xff, 0xff, 0x01, 0xff, 0xff, 0x7f }, 6, TABLES },       /* too long */
		{ { 0x9b, 0, 0, 0, 0, 0xff, 0x01, 4, 0, 5, 0x20, 0 }, 12, TABLES }, /* indirect */
		{ { 0xff }, 1, 0x900000 },
		{ { 0xff }, 1, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct file file;
		struct facts *f;
		size_t cie;

		start_file(&file);
		cie = put_cie(&file);
		put_fde(&file, cie, CODE, 0x40, t[i].lsda, "", 0);
		put_fde(&file, cie, CODE + 0x40, 0x40, 0, "", 0);
		put_fde(&file, cie, CODE + 0x20, 0x10, 0, "", 0); /* in the bad one */
		memcpy(file.b + TABLES, t[i].bytes, t[i].n);
		f = make(&file);
		assert_int_equal(f->pub.nr_funcs, 1);
		assert_int_equal(f->func[0].start, CODE + 0x40);
		sym_facts_free(&f->pub);
	}
}

/* A file of a few pages must not cost a table's length for each function that shares it. */
static void work_is_bounded_by_the_size_of_the_file(void **state)
{
	struct file file;
	struct facts *f;
	size_t cie;

	start_file(&file);
	cie = put_cie(&file);
	for (unsigned int i = 0; i < 60; i++)
		put_fde(&file, cie, CODE + i * 16, 16, TABLES, "", 0);
	memcpy(file.b + TABLES, "\xff\xff\x01\xf0\x0f", 5); /* 2032 bytes of zeros */
	assert_int_equal(try_facts(&file, &f), -EFBIG);
	memcpy(file.b + TABLES, "\xff\xff\x01\xf0\x00", 5); /* 112 */
	f = make(&file);
	assert_int_equal(f->pub.nr_funcs, 60);
	sym_facts_free(&f->pub);
}

static bool bare(const void *program, size_t n, uint64_t pc)
{
	struct file file;
	struct facts *f;
	bool is;

	start_file(&file);
	put_fde(&file, put_cie(&file), CODE, 0x400, 0, program, n);
	f = make(&file);
	is = facts_bare_stack(f, CODE + pc);
	sym_facts_free(&f->pub);
	return is;
}

#define BARE(program, pc) bare(program, sizeof(program) - 1, pc)

static void a_cfa_program_is_run_up_to_the_place(void **state)
{
	assert_true(BARE("\x41\x0e\x10", 0));
	assert_false(BARE("\x41\x0e\x10", 1));
	assert_false(BARE("\x02\x80\x0e\x10", 0x80));
	assert_true(BARE("\x02\x80\x0e\x10", 0x7f));
	assert_false(BARE("\x03\x80\x01\x0e\x10", 0x180));
	assert_true(BARE("\x04\x80\x01\x00\x00\x0e\x10", 0x17f));
	/* remembered and restored */
	assert_true(BARE("\x0a\x41\x0e\x10\x41\x0b", 2));
	assert_false(BARE("\x0a\x41\x0e\x10\x41\x0b", 1));
	/* through rbp, and back */
	assert_false(BARE("\x0d\x06", 0));
	assert_true(BARE("\x0d\x06\x41\x0c\x07\x08", 1));
	/* signed and factored: -1 * -8 */
	assert_true(BARE("\x0e\x10\x13\x7f", 0));
	assert_true(BARE("\x0e\x10\x12\x07\x7f", 0));
	/* expressions, and a plain rule after one */
	assert_false(BARE("\x0f\x01\x9c", 0));
	assert_true(BARE("\x0f\x01\x9c\x0c\x07\x08", 0));
	/* other registers' rules are passed over */
	assert_true(
		BARE("\x86\x02\x05\x06\x02\x10\x06\x01\x9c\xc6\x07\x10\x2e\x20\x09\x06\x07", 0));
	assert_false(BARE("\x86\x02\x05\x06\x02\x10\x06\x01\x9c\xc6\x07\x10\x2e\x20\x0e\x10", 0));
}

static void a_cfa_program_that_makes_no_sense_is_never_bare(void **state)
{
	assert_false(BARE("\x0b", 0));
	assert_false(BARE("\x3f", 0));
	assert_false(BARE("\x0e", 0));
	assert_false(BARE("\x10\x06\x7f", 0));
	assert_false(BARE("\x41\x0b\x41", 1));
	assert_false(
		BARE("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a", 0));
	assert_false(BARE("\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0));
	assert_false(bare("", 0, 0x400));
	assert_false(bare("", 0, (uint64_t)-1 - CODE));
}

static void put_dynamic(struct file *f, uint64_t tag, uint64_t value)
{
	if (!header(f)->e_flags) {
		const Elf64_Phdr ph = {
			PT_DYNAMIC, PF_R, DYNAMIC, DYNAMIC, DYNAMIC, 0x100, 0x100, 8
		};

		header(f)->e_flags = 1; /* once */
		header(f)->e_phnum++;
		memcpy(f->b + 64 + 5 * sizeof(ph), &ph, sizeof(ph));
		f->at = DYNAMIC;
	}
	put(f, tag, 8);
	put(f, value, 8);
}

static void packed_relocations_are_unpacked(void **state)
{
	static const uint64_t at[] = { DATA, DATA + 8, DATA + 24, DATA + 63 * 8, DATA + 64 * 8 };
	struct file file;
	struct facts *f;

	start_file(&file);
	put_dynamic(&file, DT_RELR, RELOCS);
	put_dynamic(&file, DT_RELRSZ, 32);
	file.at = RELOCS;
	put(&file, DATA, 8);
	put(&file, 1 | 1 << 1 | 1 << 3 | UINT64_C(1) << 63, 8);
	put(&file, 1 | 1 << 1, 8);
	put(&file, 0x900000, 8); /* nowhere */
	for (size_t i = 0; i < 5; i++) {
		file.at = at[i];
		put(&file, CODE + 16 * i, 8);
	}
	f = make(&file);
	assert_int_equal(f->pub.nr_relocs, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(f->reloc[i].place, at[i]);
		assert_int_equal(f->reloc[i].target, CODE + 16 * i);
	}
	sym_facts_free(&f->pub);
}

static void packed_relocations_do_not_multiply(void **state)
{
	struct file file;
	struct facts *f;

	start_file(&file);
	put_dynamic(&file, DT_RELR, RELOCS);
	put_dynamic(&file, DT_RELRSZ, 0x1000);
	file.at = RELOCS;
	for (size_t i = 0; i < 0x200; i++)
		put(&file, i % 2 ? UINT64_MAX : DATA, 8);
	assert_int_equal(try_facts(&file, &f), -EFBIG);
}

static void only_relocations_that_name_code_count(void **state)
{
	static const struct {
		uint64_t place, info, addend;
	} r[] = {
		{ DATA + 8, R_X86_64_RELATIVE, CODE + 1 },
		{ DATA, R_X86_64_IRELATIVE, CODE + 2 },
		{ DATA + 16, ELF64_R_INFO(1, R_X86_64_64), 3 },
		{ DATA + 24, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 99 },
		{ DATA + 32, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), CODE }, /* undefined */
		{ DATA + 40, ELF64_R_INFO(0xffffffff, R_X86_64_64), CODE },
		{ DATA + 48, R_X86_64_RELATIVE, DATA },
		{ DATA + 56, R_X86_64_RELATIVE, UINT64_MAX },
		{ DATA + 64, R_X86_64_DTPMOD64, CODE },
	};
	const Elf64_Sym sym[3] = { { .st_shndx = 1, .st_value = CODE },
		                   { .st_shndx = 1, .st_value = CODE + 0x10 },
		                   { .st_value = CODE } };
	struct file file;
	struct facts *f;

	start_file(&file);
	put_dynamic(&file, DT_RELA, RELOCS);
	put_dynamic(&file, DT_RELASZ, sizeof(r));
	put_dynamic(&file, DT_SYMTAB, TABLES);
	memcpy(file.b + RELOCS, r, sizeof(r));
	memcpy(file.b + TABLES, sym, sizeof(sym));
	f = make(&file);
	assert_int_equal(f->pub.nr_relocs, 4);
	assert_int_equal(f->reloc[0].target, CODE + 2);
	assert_int_equal(f->reloc[1].target, CODE + 1);
	assert_int_equal(f->reloc[2].target, CODE + 0x13);
	assert_int_equal(f->reloc[3].target, CODE + 0x10);
	sym_facts_free(&f->pub);
}

static void sections_that_disagree_with_segments_are_not_believed(void **state)
{
	static const struct {
		uint64_t addr, off, size, entry;
		bool sane;
	} t[] = {
		{ CODE + 0x100, CODE + 0x100, 0x200, 0, true },
		{ CODE + 0x100, CODE + 0x100, 0x200, CODE + 0x100, true },
		{ CODE + 0x100, CODE + 0x100, 0x200, CODE, false }, /* begins elsewhere */
		{ CODE + 0x100, CODE, 0x200, 0, false },            /* other bytes */
		{ CODE + 0x100, CODE + 0x100, 0x1000, 0, false },   /* too long */
		{ DATA, DATA, 0x100, 0, false },                    /* not executable */
		{ 0x900000, CODE, 0x100, 0, false },                /* nowhere */
		{ CODE + 0x100, CODE + 0x100, UINT64_MAX, 0, false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		Elf64_Shdr sh[2] = { { 0 },
			             { .sh_type = SHT_PROGBITS,
			               .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			               .sh_addr = t[i].addr,
			               .sh_offset = t[i].off,
			               .sh_size = t[i].size } };
		struct file file;
		struct facts *f;

		start_file(&file);
		header(&file)->e_shoff = DATA;
		header(&file)->e_shnum = 2;
		header(&file)->e_entry = t[i].entry;
		memcpy(file.b + DATA, sh, sizeof(sh));
		f = make(&file);
		assert_int_equal(f->by_sections, t[i].sane);
		assert_int_equal(f->pub.nr_code, 1);
		assert_int_equal(f->code[0].addr, t[i].sane ? t[i].addr : CODE);
		assert_int_equal(f->code[0].size, t[i].sane ? t[i].size : 0x1000);
		sym_facts_free(&f->pub);
	}
}

static void without_code_there_are_no_facts(void **state)
{
	struct file file;
	struct facts *f;
	Elf64_Phdr *ph;

	start_file(&file);
	ph = (Elf64_Phdr *)(file.b + 64);
	ph[1].p_flags = PF_R;
	assert_int_equal(try_facts(&file, &f), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_in_each_encoding_gives_its_pads),
		cmocka_unit_test(a_function_whose_table_makes_no_sense_is_none),
		cmocka_unit_test(work_is_bounded_by_the_size_of_the_file),
		cmocka_unit_test(a_cfa_program_is_run_up_to_the_place),
		cmocka_unit_test(a_cfa_program_that_makes_no_sense_is_never_bare),
		cmocka_unit_test(packed_relocations_are_unpacked),
		cmocka_unit_test(packed_relocations_do_not_multiply),
		cmocka_unit_test(only_relocations_that_name_code_count),
		cmocka_unit_test(sections_that_disagree_with_segments_are_not_believed),
		cmocka_unit_test(without_code_there_are_no_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
