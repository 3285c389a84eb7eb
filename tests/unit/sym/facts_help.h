/* SPDX-License-Identifier: MIT */
/* Facts of a file that is mapped for that alone. */
#ifndef UKP_TEST_SYM_FACTS_HELP_H
#define UKP_TEST_SYM_FACTS_HELP_H

#include "help.h"

#include "sym/facts.h"

/* NULL: no such file.  The process that the facts come from is closed already. */
HELP struct sym_facts *facts_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err err = ERR_INIT;
	struct sym_facts *f = NULL;
	struct sym_proc *p;
	void *at = MAP_FAILED;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (fd < 0)
		return NULL;
	assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	for (unsigned int i = 0; i < eh.e_phnum && at == MAP_FAILED; i++) {
		assert_int_equal(pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))),
		                 sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			          (off_t)PAGE_DOWN(ph.p_offset));
	}
	close(fd);
	assert_ptr_not_equal(at, MAP_FAILED);
	p = open_proc(getpid());
	if (sym_facts(sym_module_of(p, (uint64_t)(uintptr_t)at), &f, &err))
		fail_msg("%s", err.text);
	sym_close(p);
	munmap(at, PAGE);
	return f;
}

HELP bool facts_in_code(const struct sym_facts *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nr_code; i++)
		if (addr - f->code[i].addr < f->code[i].size)
			return true;
	return false;
}

HELP const struct sym_facts_func *facts_func(const struct sym_facts *f, uint64_t start)
{
	for (size_t i = 0; i < f->nr_funcs; i++)
		if (f->func[i].start == start)
			return &f->func[i];
	return NULL;
}

HELP bool facts_has_extra(const struct sym_facts *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nr_extra; i++)
		if (f->extra[i] == addr)
			return true;
	return false;
}

/* What every file's facts are like. */
HELP void facts_check(const struct sym_facts *f)
{
	for (size_t i = 1; i < f->nr_code; i++)
		assert_true(f->code[i].addr >= f->code[i - 1].addr + f->code[i - 1].size);
	for (size_t i = 0; i < f->nr_funcs; i++) {
		assert_true(f->func[i].start < f->func[i].end);
		assert_true(facts_in_code(f, f->func[i].start));
		assert_true(facts_in_code(f, f->func[i].end - 1));
		assert_true(!i || f->func[i].start > f->func[i - 1].start);
	}
	for (size_t i = 0; i < f->nr_relocs; i++) {
		assert_true(facts_in_code(f, f->reloc[i].target));
		assert_true(!i || f->reloc[i].place >= f->reloc[i - 1].place);
	}
	for (size_t i = 0; i < f->nr_extra; i++)
		assert_true(facts_in_code(f, f->extra[i]));
}

#endif
