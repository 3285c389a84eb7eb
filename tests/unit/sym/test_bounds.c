/* SPDX-License-Identifier: MIT */
#include "help.h"

/* A file of one segment: headers, code at 0x1000, .eh_frame at 0x2000, link time = offset. */
#define FRAMES 0x2000
#define FILE_SIZE 0x3000

struct file {
	uint8_t b[FILE_SIZE];
	size_t at;
};

static void put(struct file *f, uint64_t v, unsigned int size)
{
	memcpy(f->b + f->at, &v, size);
	f->at += size;
}

static void start_file(struct file *f)
{
	Elf64_Ehdr eh = { .e_type = ET_DYN,
		          .e_machine = EM_X86_64,
		          .e_phoff = 64,
		          .e_phnum = 2,
		          .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_filesz = FILE_SIZE,
		  .p_memsz = FILE_SIZE },
		{ .p_type = PT_GNU_EH_FRAME,
		  .p_offset = 0x1f00,
		  .p_vaddr = 0x1f00,
		  .p_filesz = 12 },
	};

	memset(f, 0, sizeof(*f));
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(f->b, &eh, sizeof(eh));
	memcpy(f->b + 64, ph, sizeof(ph));
	f->at = 0x1f00;
	put(f, 0x3b031b01, 4); /* version 1; eh_frame_ptr: pcrel sdata4 */
	put(f, FRAMES - f->at, 4);
	f->at = FRAMES;
}

static size_t put_cie(struct file *f, const char *aug, uint8_t encoding)
{
	size_t start = f->at, data = strchr(aug, 'z') ? strlen(aug) - 1 : 0;

	put(f, 4 + 1 + strlen(aug) + 1 + 3 + (data ? 1 + 1 : 0), 4);
	put(f, 0, 4);
	put(f, 1, 1);
	for (const char *a = aug; *a; a++)
		put(f, (uint8_t)*a, 1);
	put(f, 0, 1);
	put(f, 1, 1);
	put(f, 0x78, 1);
	put(f, 16, 1);
	if (data) {
		put(f, 1, 1);
		put(f, encoding, 1);
	}
	return start;
}

static void put_fde(struct file *f, size_t cie, uint8_t encoding, uint64_t start, uint64_t len)
{
	unsigned int size = (encoding & 7) == 2 ? 2 : (encoding & 7) == 3 ? 4 : 8;

	put(f, 4 + 2 * size, 4);
	put(f, f->at - cie, 4);
	put(f, (encoding & 0x70) == 0x10 ? start - f->at : start, size);
	put(f, len, size);
}

static struct fdes load(struct file *f)
{
	struct fdes fdes = { 0 };
	struct image *img;

	assert_int_equal(image_from_buffer(&img, f->b, FILE_SIZE, false), 0);
	fdes_load(&fdes, img);
	image_free(img);
	return fdes;
}

static void each_pointer_encoding_is_read(void **state)
{
	static const uint8_t encodings[] = { 0x00, 0x02, 0x03, 0x04, 0x0a, 0x0b, 0x0c, 0x1b, 0x1c };

	for (size_t i = 0; i < sizeof(encodings); i++) {
		const struct fde *fde;
		struct file f;
		struct fdes fdes;

		start_file(&f);
		put_fde(&f, put_cie(&f, "zR", encodings[i]), encodings[i], 0x1010, 0x20);
		fdes = load(&f);
		assert_int_equal(fdes.nr, 1);
		assert_null(fdes_find(&fdes, 0x100f));
		assert_null(fdes_find(&fdes, 0x1030));
		fde = fdes_find(&fdes, 0x102f);
		assert_non_null(fde);
		assert_int_equal(fde->start, 0x1010);
		assert_int_equal(fde->end, 0x1030);
		assert_false(fde->signal);
		free(fdes.fde);
	}
}

static void a_signal_frame_is_told_and_may_overlap(void **state)
{
	struct fdes fdes;
	struct file f;

	start_file(&f);
	put_fde(&f, put_cie(&f, "zRS", 0x1b), 0x1b, 0x101f, 0x11);
	put_fde(&f, put_cie(&f, "zR", 0x1b), 0x1b, 0x1000, 0x20);
	fdes = load(&f);
	assert_int_equal(fdes.nr, 2);
	assert_false(fdes_find(&fdes, 0x101e)->signal);
	assert_true(fdes_find(&fdes, 0x1020)->signal);
	free(fdes.fde);
}

static void an_entry_that_makes_no_sense_is_left_out(void **state)
{
	struct fdes fdes;
	struct file f;
	size_t cie;

	start_file(&f);
	cie = put_cie(&f, "zR", 0x1b);
	put_fde(&f, cie, 0x1b, 0x1000, 0);          /* empty */
	put_fde(&f, cie, 0x1b, 0x900000, 0x10);     /* outside */
	put_fde(&f, cie, 0x1b, 0x1000, 0x7fffffff); /* too long */
	put_fde(&f, f.at - 4, 0x1b, 0x1000, 0x10);  /* no CIE there */
	put_fde(&f, put_cie(&f, "zQ", 0x1b), 0x1b, 0x1000, 0x10);
	put_fde(&f, put_cie(&f, "eh", 0x1b), 0x1b, 0x1000, 0x10);
	put_fde(&f, put_cie(&f, "zR", 0x7b), 0x1b, 0x1000, 0x10);
	put_fde(&f, cie, 0x1b, 0x1100, 0x10); /* a good one behind them all */
	fdes = load(&f);
	assert_int_equal(fdes.nr, 1);
	assert_int_equal(fdes.fde[0].start, 0x1100);
	free(fdes.fde);
}

static void a_length_past_the_end_stops_the_reading(void **state)
{
	struct fdes fdes;
	struct file f;
	size_t cie;

	start_file(&f);
	cie = put_cie(&f, "zR", 0x1b);
	put_fde(&f, cie, 0x1b, 0x1000, 0x10);
	put(&f, 0xfffffff0, 4);
	put_fde(&f, cie, 0x1b, 0x1100, 0x10);
	fdes = load(&f);
	assert_int_equal(fdes.nr, 1);
	free(fdes.fde);
}

static void the_signal_return_of_libc_is_a_signal_frame(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *m = sym_module_find(p, "libc.so.6");
	const struct fdes *f = module_fdes(m);
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	uint8_t bytes[sizeof(code)];
	uint64_t start, end;
	size_t signals = 0;
	bool signal;

	for (size_t i = 0; i < f->nr; i++) {
		if (!f->fde[i].signal)
			continue;
		signals++;
		/* one byte early */
		assert_int_equal(
			sym_original(p, f->fde[i].start + m->bias + 1, bytes, sizeof(bytes)), 0);
		assert_memory_equal(bytes, code, sizeof(code));
		assert_int_equal(
			sym_bounds(p, f->fde[i].start + m->bias + 1, &start, &end, &signal), 0);
		assert_true(signal);
	}
	assert_int_equal(signals, 1);
	sym_close(p);
}

/* Symbols and frames come from different tools: where both speak, they agree. */
static void frames_start_where_functions_do(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *m = sym_module_find(p, "libc.so.6");
	const struct symtab *t = module_symbols(m);
	size_t agree = 0, differ = 0;

	for (size_t i = 0; i < t->nr; i++) {
		uint64_t start, end;
		bool signal;

		if (!t->sym[i].func ||
		    sym_bounds(p, t->sym[i].addr + m->bias, &start, &end, &signal))
			continue;
		if (start == t->sym[i].addr + m->bias)
			agree++;
		else
			differ++;
	}
	assert_true(agree > 1000);
	assert_true(differ * 50 < agree);
	sym_close(p);
}

static void without_a_frame_the_symbol_gives_the_bounds(void **state)
{
	uint64_t start, end, addr;
	struct sym_symbol s;
	struct sym_proc *p;
	struct target t;
	bool signal;

	assert_true(help_run("gcc -O1 -w -o %s tests/targets/symbols.c", help_path("t")));
	target_start(&t, help_path("t"));
	p = open_proc(t.pid);
	addr = target_addr(&t, "untyped_bare");
	assert_int_equal(sym_lookup(p, NULL, "untyped_bare", &s, 1), 1);
	assert_int_equal(sym_bounds(p, addr + 1, &start, &end, &signal), 0);
	assert_int_equal(start, addr);
	assert_int_equal(end, addr + s.size);
	assert_int_equal(sym_bounds(p, target_addr(&t, "global_object"), &start, &end, &signal),
	                 -ENOENT);
	assert_int_equal(sym_bounds(p, 1, &start, &end, &signal), -ENOENT);
	sym_close(p);
	target_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pointer_encoding_is_read),
		cmocka_unit_test(a_signal_frame_is_told_and_may_overlap),
		cmocka_unit_test(an_entry_that_makes_no_sense_is_left_out),
		cmocka_unit_test(a_length_past_the_end_stops_the_reading),
		cmocka_unit_test(the_signal_return_of_libc_is_a_signal_frame),
		cmocka_unit_test(frames_start_where_functions_do),
		cmocka_unit_test_setup_teardown(without_a_frame_the_symbol_gives_the_bounds,
		                                help_setup, help_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
