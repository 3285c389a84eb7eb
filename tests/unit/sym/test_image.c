/* SPDX-License-Identifier: MIT */
/* Files that lie. */
#include "help.h"

#include <sys/resource.h>

static uint8_t *good;
static size_t good_size;

static int build_good(void **state)
{
	struct stat st;
	int fd;

	help_setup(state);
	if (!help_run("gcc -O1 -w -shared -fPIC -o %s tests/targets/symbols.c", help_path("g.so")))
		return -1;
	fd = open(help_path("g.so"), O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	good_size = (size_t)st.st_size;
	good = malloc(good_size);
	if (read(fd, good, good_size) != (ssize_t)good_size)
		return -1;
	return close(fd);
}

static int drop_good(void **state)
{
	free(good);
	return help_teardown(state);
}

/* Whatever the file is: read all of it, give it back. Number of symbols, -1 if it is no ELF. */
static long read_all(struct image *img)
{
	struct symtab t = { 0 };
	struct fdes f = { 0 };
	struct dynamic d;
	long nr;

	image_dynamic(img, 0, &d);
	fdes_load(&f, img);
	symtab_load(&t, img, NULL, 0, &f);
	nr = (long)t.nr;
	symtab_free(&t);
	free(f.fde);
	image_free(img);
	return nr;
}

static long read_buffer(const void *buf, size_t len)
{
	struct image *img;
	int r = image_from_buffer(&img, buf, len, false);

	assert_true(r == 0 || r == -ENOEXEC);
	return r ? -1 : read_all(img);
}

static void a_good_file_has_its_symbols(void **state)
{
	assert_true(read_buffer(good, good_size) > 5);
}

static void a_file_cut_anywhere_is_no_trouble(void **state)
{
	size_t step = good_size / 700 + 1;

	for (size_t len = 0; len < good_size; len += len < 1024 ? 1 : step) {
		/* a copy of its own, so that a byte too many is seen */
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, good, len);
		read_buffer(copy, len);
		free(copy);
	}
	assert_int_equal(read_buffer(good, 63), -1);
}

static void any_wrong_byte_in_the_headers_is_no_trouble(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	uint8_t *copy = malloc(good_size);
	Elf64_Ehdr eh;

	memcpy(copy, good, good_size);
	memcpy(&eh, good, sizeof(eh));
	for (size_t i = 0; i < sizeof(eh) + eh.e_phnum * sizeof(Elf64_Phdr); i++) {
		for (size_t k = 0; k < sizeof(values); k++) {
			copy[i] = values[k];
			read_buffer(copy, good_size);
		}
		copy[i] = good[i];
	}
	for (size_t i = eh.e_shoff; i < good_size; i++) {
		copy[i] = 0xff;
		read_buffer(copy, good_size);
		copy[i] = good[i];
	}
	free(copy);
}

static void other_kinds_of_files_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} other[] = {
		{ EI_CLASS, ELFCLASS32 }, { EI_DATA, ELFDATA2MSB }, { 16, ET_REL },
		{ 16, ET_CORE },          { 18, EM_AARCH64 },       { 0, 'x' },
	};

	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		uint8_t was = good[other[i].at];

		good[other[i].at] = other[i].value;
		assert_int_equal(read_buffer(good, good_size), -1);
		good[other[i].at] = was;
	}
}

static void without_section_headers_dynamic_symbols_remain(void **state)
{
	Elf64_Ehdr eh, was;
	struct symtab t = { 0 };
	struct fdes f = { 0 };
	struct image *img;
	bool found = false;

	memcpy(&was, good, sizeof(was));
	eh = was;
	eh.e_shoff = 0;
	eh.e_shnum = 0;
	memcpy(good, &eh, sizeof(eh));
	assert_int_equal(image_from_buffer(&img, good, good_size, false), 0);
	assert_int_equal(img->nr_sh, 0);
	fdes_load(&f, img);
	assert_true(f.nr > 3);
	symtab_load(&t, img, NULL, 0, &f);
	for (size_t i = 0; i < t.nr; i++)
		found |= !strcmp(t.sym[i].name, "global_work");
	assert_true(found);
	symtab_free(&t);
	free(f.fde);
	image_free(img);
	memcpy(good, &was, sizeof(was));
}

/* A file with holes costs its writer nothing: it must not cost us memory either. */
static void a_sparse_file_of_4_gib_does_not_allocate(void **state)
{
	Elf64_Ehdr eh = { .e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = 64, .e_phnum = 1 };
	Elf64_Phdr ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X };
	uint64_t size = UINT64_C(4) << 30;
	Elf64_Shdr sh[3] = { { .sh_size = size / 64, .sh_link = 2 },
		             { .sh_type = SHT_SYMTAB, .sh_link = 2, .sh_entsize = 24 },
		             { .sh_type = SHT_STRTAB } };
	int fd = memfd_create("sparse", 0);
	struct rusage before, after;
	struct image *img;

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_phentsize = sizeof(ph);
	eh.e_shentsize = sizeof(sh[0]);
	eh.e_shoff = 4096;
	eh.e_shstrndx = SHN_XINDEX;
	ph.p_filesz = ph.p_memsz = size;
	sh[1].sh_size = sh[2].sh_size = size - 8192;
	sh[1].sh_offset = sh[2].sh_offset = 8192;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	for (unsigned int nr = 0; nr <= 3; nr += 3) { /* 0: the count is in section 0 */
		eh.e_shnum = (uint16_t)nr;
		assert_int_equal(pwrite(fd, &eh, sizeof(eh), 0), sizeof(eh));
		assert_int_equal(pwrite(fd, &ph, sizeof(ph), 64), sizeof(ph));
		assert_int_equal(pwrite(fd, sh, sizeof(sh), 4096), sizeof(sh));
		getrusage(RUSAGE_SELF, &before);
		assert_int_equal(image_from_fd(&img, dup(fd)), 0);
		assert_int_equal(read_all(img), 0);
		getrusage(RUSAGE_SELF, &after);
		assert_true(after.ru_maxrss - before.ru_maxrss < 65536);
	}
	close(fd);
}

static void a_file_that_shrinks_is_an_error_and_no_signal(void **state)
{
	int fd = memfd_create("shrinks", 0);
	struct image *img;
	uint8_t byte;

	assert_int_equal(write(fd, good, good_size), good_size);
	assert_int_equal(image_from_fd(&img, dup(fd)), 0);
	assert_int_equal(image_read(img, good_size - 1, &byte, 1), 0);
	assert_int_equal(image_read(img, good_size, &byte, 1), -EIO);
	assert_int_equal(image_read(img, UINT64_MAX, &byte, 1), -EIO);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(image_read(img, good_size - 1, &byte, 1), -EIO);
	assert_int_equal(image_read(img, 4000, &byte, 1), 0);
	read_all(img);
	close(fd);
}

/* Names with control characters would write to the reader's terminal. */
static void an_unprintable_name_is_left_out(void **state)
{
	uint8_t *copy = malloc(good_size), *at = copy;
	size_t changed = 0;
	long was;

	memcpy(copy, good, good_size);
	was = read_buffer(copy, good_size);
	while ((at = memmem(at, good_size - (size_t)(at - copy), "local_work", 10))) {
		at[3] = 0x1b;
		changed++;
	}
	assert_true(changed > 0);
	assert_int_equal(read_buffer(copy, good_size), was - 1);
	free(copy);
}

/* Symbols at one place whose names are all the tails of one long string. */
static void a_flood_of_long_names_is_bounded_work(void **state)
{
	size_t nr = 300000, names = 4096 + nr * sizeof(Elf64_Sym), size = names + 65536;
	uint8_t *buf = calloc(1, size);
	Elf64_Ehdr eh = { .e_type = ET_DYN,
		          .e_machine = EM_X86_64,
		          .e_phoff = 64,
		          .e_phnum = 1,
		          .e_shoff = 256,
		          .e_shnum = 3,
		          .e_phentsize = sizeof(Elf64_Phdr),
		          .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	Elf64_Shdr sh[3] = { { 0 },
		             { .sh_type = SHT_SYMTAB,
		               .sh_link = 2,
		               .sh_entsize = 24,
		               .sh_offset = 4096,
		               .sh_size = names - 4096 },
		             { .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 65536 } };
	Elf64_Sym *sym = (void *)(buf + 4096);

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(buf, &eh, sizeof(eh));
	memcpy(buf + 64, &ph, sizeof(ph));
	memcpy(buf + 256, sh, sizeof(sh));
	memset(buf + names, 'a', 65535);
	for (size_t i = 0; i < nr; i++) {
		sym[i].st_name = (uint32_t)(i % 65000);
		sym[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		sym[i].st_shndx = 0x100;
		sym[i].st_value = i & 1;
		sym[i].st_size = UINT64_MAX;
	}
	assert_true(read_buffer(buf, size) > 0);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_file_has_its_symbols),
		cmocka_unit_test(a_file_cut_anywhere_is_no_trouble),
		cmocka_unit_test(any_wrong_byte_in_the_headers_is_no_trouble),
		cmocka_unit_test(other_kinds_of_files_are_refused),
		cmocka_unit_test(without_section_headers_dynamic_symbols_remain),
		cmocka_unit_test(a_sparse_file_of_4_gib_does_not_allocate),
		cmocka_unit_test(a_file_that_shrinks_is_an_error_and_no_signal),
		cmocka_unit_test(an_unprintable_name_is_left_out),
		cmocka_unit_test(a_flood_of_long_names_is_bounded_work),
	};

	return cmocka_run_group_tests(tests, build_good, drop_good);
}
