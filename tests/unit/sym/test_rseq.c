/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences of a library, whose words a linker may fill in or leave
 * to the relocations, as lld does: then the file has zeros.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/sym.h"

static const char source[] = "__asm__(\".pushsection __rseq_cs, \\\"aw\\\"\\n"
			     ".long 0, 0\\n .quad begin, end - begin, abort_here\\n"
			     ".long 0, 0\\n .quad 0, 0, 0\\n"
			     ".popsection\\n .text\\n .globl begin, end, abort_here\\n"
			     "begin: nop\\n nop\\n nop\\n end: ret\\n abort_here: ret\\n\");";

static char dir[] = "/tmp/ukp-rseq-XXXXXX";

static void build(const char *name)
{
	char path[128], command[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.c", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "gcc -shared -fPIC -Wl,-Bsymbolic -o %s/%s.so %s", dir,
	         name, path);
	assert_int_equal(system(command), 0);
}

/* The words that are relocated become zero. */
static void empty_words(const char *name)
{
	char path[128];
	struct stat st;
	uint8_t *elf;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.so", dir, name);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && !fstat(fd, &st));
	elf = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(elf != MAP_FAILED);

	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)elf;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(elf + eh->e_shoff);
	bool found = false;

	for (int i = 0; i < eh->e_shnum; i++) {
		const char *s = (const char *)elf + sh[eh->e_shstrndx].sh_offset + sh[i].sh_name;

		if (strcmp(s, "__rseq_cs"))
			continue;
		memset(elf + sh[i].sh_offset + 8, 0, 8);
		memset(elf + sh[i].sh_offset + 24, 0, 8);
		found = true;
	}
	assert_true(found);
	munmap(elf, (size_t)st.st_size);
	close(fd);
}

static void expect_sequence(const char *name)
{
	struct err err = ERR_INIT;
	const struct sym_rseq *cs;
	struct sym_module *m;
	struct sym_proc *sym;
	char path[128];
	void *h;

	snprintf(path, sizeof(path), "%s/%s.so", dir, name);
	h = dlopen(path, RTLD_NOW);
	assert_non_null(h);
	assert_int_equal(sym_open(&sym, getpid(), &err), 0);
	m = sym_module_of(sym, (uint64_t)dlsym(h, "begin"));
	assert_non_null(m);
	/* one, for the second has no code */
	assert_int_equal(sym_rseqs(m, &cs), 1);
	assert_int_equal(cs[0].start, (uint64_t)dlsym(h, "begin"));
	assert_int_equal(cs[0].end, (uint64_t)dlsym(h, "end"));
	assert_int_equal(cs[0].abort, (uint64_t)dlsym(h, "abort_here"));
	/* and asked again */
	assert_int_equal(sym_rseqs(m, &cs), 1);
	m = sym_module_find(sym, "libc");
	assert_int_equal(sym_rseqs(m, &cs), 0);
	sym_close(sym);
	dlclose(h);
}

static void a_sequence_is_found_whose_words_are_in_the_file(void **state)
{
	(void)state;
	build("filled");
	expect_sequence("filled");
}

static void a_sequence_is_found_whose_words_are_in_relocations(void **state)
{
	(void)state;
	build("empty");
	empty_words("empty");
	expect_sequence("empty");
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_all(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sequence_is_found_whose_words_are_in_the_file),
		cmocka_unit_test(a_sequence_is_found_whose_words_are_in_relocations),
	};

	return cmocka_run_group_tests(tests, setup, remove_all);
}
