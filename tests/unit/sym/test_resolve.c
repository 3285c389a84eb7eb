/* SPDX-License-Identifier: MIT */
/* One program, built in every way that programs are built. */
#include "help.h"

#define SOURCE "tests/targets/symbols.c"

struct build {
	const char *name, *command;
	bool local, global; /* symbols that are left */
	bool pie;
};

static const struct build builds[] = {
	{ "dynamic", "gcc -O1 -pie -fPIE", true, true, true },
	{ "no-pie", "gcc -O1 -no-pie -fno-pie", true, true, false },
	{ "static", "gcc -O1 -static -no-pie -fno-pie", true, true, false },
	{ "static-pie", "gcc -O1 -static-pie -fPIE", true, true, true },
	{ "musl", "musl-gcc -O1 -DNO_IFUNC", true, true, true },
	{ "musl-static", "musl-gcc -O1 -static -DNO_IFUNC", true, true, false },
	{ "exporting, stripped", "gcc -O1 -s -rdynamic", false, true, true },
	{ "stripped", "gcc -O1 -s", false, false, true },
	{ "static, stripped", "gcc -O1 -static -s", false, false, false },
	{ "one page for all", "gcc -O1 -Wl,-z,noseparate-code", true, true, true },
	{ "lld, gaps", "clang -O1 -fuse-ld=lld -pie", true, true, true },
};

/* False and its reason printed: no such compiler here. */
static bool start(const struct build *b, struct target *t)
{
	if (!help_run("%s -w -o %s/t " SOURCE " >%s/log 2>&1", b->command, help_dir, help_dir)) {
		print_message("    %s: skipped: \"%s\" does not work here\n", b->name, b->command);
		return false;
	}
	target_start(t, help_path("t"));
	return true;
}

static void check_name(struct sym_proc *p, const struct target *t, const char *name, bool there)
{
	uint64_t addr = target_addr(t, name), off;
	struct sym_symbol s[4], r;
	size_t nr = sym_lookup(p, sym_module_find(p, "t"), name, s, 4);
	char text[128], want[64];

	assert_int_equal(nr, there);
	if (!there)
		return;
	assert_int_equal(s[0].addr, addr);
	assert_true(s[0].size > 0);
	assert_true(sym_resolve(p, addr, &r, &off));
	assert_string_equal(r.name, name);
	assert_int_equal(off, 0);
	sym_format(p, addr + 1, text, sizeof(text));
	snprintf(want, sizeof(want), "%s+0x1/0x%lx", name, (unsigned long)s[0].size);
	assert_string_equal(text, want);
}

static void check_text(struct sym_proc *p, const struct target *t, const char *name)
{
	uint64_t addr = target_addr(t, name), start, end;
	uint8_t file[8], memory[8];
	bool signal;
	int fd = target_mem(t->pid);

	assert_int_equal(sym_bounds(p, addr + 1, &start, &end, &signal), 0);
	assert_int_equal(start, addr);
	assert_true(end > addr + 1);
	assert_false(signal);
	assert_int_equal(sym_original(p, addr, file, sizeof(file)), 0);
	assert_int_equal(pread(fd, memory, sizeof(memory), (off_t)addr), sizeof(memory));
	assert_memory_equal(file, memory, sizeof(file));
	close(fd);
}

static void check_sizes(struct sym_proc *p, const struct build *b)
{
	struct sym_symbol s;

	if (!b->global)
		return;
	/* by its FDE */
	assert_int_equal(sym_lookup(p, NULL, "untyped_asm", &s, 1), 1);
	assert_int_equal(s.size, 3);
	/* up to the next symbol */
	assert_int_equal(sym_lookup(p, NULL, "untyped_bare", &s, 1), 1);
	assert_int_equal(s.size, 2);
	assert_true(s.func);
	/* not at its start, local, without an FDE of its own */
	assert_int_equal(sym_lookup(p, NULL, "no_such_label", &s, 1), 0);
	assert_int_equal(sym_lookup(p, NULL, "_global_work_alias", &s, 1), 1);
}

static void every_kind_of_program_resolves(void **state)
{
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		const struct build *b = &builds[i];
		struct sym_module *exe;
		struct target t;
		struct sym_proc *p;

		if (!start(b, &t))
			continue;
		print_message("    %s\n", b->name);
		p = open_proc(t.pid);
		exe = sym_module_find(p, "t");
		assert_non_null(exe);
		assert_true(sym_module_is_exe(exe));
		assert_true(b->pie == !!sym_module_bias(exe));
		assert_ptr_equal(sym_module_of(p, target_addr(&t, "main")), exe);
		assert_ptr_equal(sym_module_of(p, target_addr(&t, "global_object")), exe);
		check_name(p, &t, "global_work", b->global);
		check_name(p, &t, "local_work", b->local);
		check_name(p, &t, "global_object", b->global);
		check_name(p, &t, "untyped_asm", b->global);
		check_name(p, &t, "main", b->global);
		check_text(p, &t, "global_work");
		check_text(p, &t, "local_work");
		check_text(p, &t, "untyped_asm");
		check_sizes(p, b);
		sym_close(p);
		target_stop(&t);
	}
}

static void an_ifunc_is_told(void **state)
{
	struct sym_symbol s;
	struct target t;
	struct sym_proc *p;

	assert_true(start(&builds[0], &t));
	p = open_proc(t.pid);
	assert_int_equal(sym_lookup(p, NULL, "chosen", &s, 1), 1);
	assert_true(s.func && s.ifunc && s.global);
	assert_int_equal(sym_lookup(p, NULL, "chosen_impl", &s, 1), 1);
	assert_true(s.func && !s.ifunc && !s.global);
	sym_close(p);
	target_stop(&t);
}

static void the_target_may_be_named_in_many_ways(void **state)
{
	struct sym_module *exe, *libc;
	struct target t;
	struct sym_proc *p;

	assert_true(start(&builds[0], &t));
	target_stop(&t);
	assert_int_equal(symlink(help_path("t"), help_path("other-name")), 0);
	target_start(&t, help_path("other-name"));
	p = open_proc(t.pid);
	exe = sym_module_of(p, target_addr(&t, "main"));
	libc = sym_module_find(p, "libc.so.6");
	assert_non_null(libc);
	assert_ptr_equal(sym_module_find(p, "t"), exe);
	assert_ptr_equal(sym_module_find(p, help_path("t")), exe);
	assert_ptr_equal(sym_module_find(p, help_path("other-name")), exe);
	assert_ptr_equal(sym_module_find(p, "other-name"), exe);
	assert_ptr_equal(sym_module_find(p, "libc"), libc);
	assert_ptr_equal(sym_module_find(p, "libc.so"), libc);
	assert_null(sym_module_find(p, "lib"));
	assert_null(sym_module_find(p, ""));
	assert_null(sym_module_find(p, "/"));
	assert_null(sym_module_find(p, "/tmp"));
	assert_non_null(sym_module_find(p, "vdso"));
	sym_close(p);
	target_stop(&t);
}

static void the_plt_holds_no_functions(void **state)
{
	struct target t;
	struct sym_proc *p;
	struct sym_module *exe;
	const Elf64_Shdr *plt;
	uint64_t start_, end;
	char text[64], want[64];
	bool signal;

	assert_true(start(&builds[0], &t));
	p = open_proc(t.pid);
	exe = sym_module_find(p, "t");
	plt = image_section(exe->img, ".plt");
	assert_non_null(plt);
	assert_int_equal(sym_bounds(p, plt->sh_addr + exe->bias + 17, &start_, &end, &signal),
	                 -ENOENT);
	sym_format(p, plt->sh_addr + exe->bias + 1, text, sizeof(text));
	/* Its place in the file. */
	snprintf(want, sizeof(want), "t:0x%lx", (unsigned long)plt->sh_offset + 1);
	assert_string_equal(text, want);
	sym_close(p);
	target_stop(&t);
}

static void functions_are_listed_by_address_and_by_glob(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct seen all = { NULL, 0, { 0 } }, one = { NULL, 0, { 0 } };
	struct sym_module *libc = sym_module_find(p, "libc");

	sym_for_each_func(p, libc, NULL, see, &all);
	assert_true(all.nr > 1000);
	sym_for_each_func(p, libc, "getpi[d]", see, &one);
	assert_int_equal(one.nr, 1);
	assert_string_equal(one.sym.name, "getpid");
	assert_string_equal(sym_module_name(one.sym.module), "libc.so.6");
	sym_close(p);
}

struct walked {
	uint64_t upto, bytes;
	size_t nr, back;
};

static int walk(uint64_t start, uint64_t end, void *arg)
{
	struct walked *w = arg;

	w->back += start < w->upto || end <= start;
	w->upto = end;
	w->bytes += end - start;
	w->nr++;
	return 0;
}

static void code_is_handed_out_once_and_in_order(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *libc = sym_module_find(p, "libc");
	struct walked w = { 0 };

	assert_int_equal(sym_for_each_range(p, libc, walk, &w), 0);
	assert_int_equal(w.back, 0);
	assert_true(w.nr > 1000);
	/* Most functions of libc have no name there but the debug symbols'. */
	assert_true(w.bytes > 500000);
	sym_close(p);
}

struct entries {
	uint64_t last;
	size_t named, nameless, back, inside;
	struct sym_proc *p;
};

static int enter(const struct sym_symbol *s, void *arg)
{
	struct entries *e = arg;
	struct sym_symbol named;
	uint64_t off;

	e->back += s->addr < e->last;
	e->last = s->addr;
	if (*s->name) {
		e->named++;
		return 0;
	}
	e->nameless++;
	/* With a name it would have been handed out by that. */
	e->inside += sym_resolve(e->p, s->addr, &named, &off) && named.func && off < named.size;
	return 0;
}

static void entries_are_those_with_a_name_and_those_without(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *libc = sym_module_find(p, "libc");
	struct seen all = { NULL, 0, { 0 } };
	struct entries e = { .p = p };

	sym_for_each_func(p, libc, NULL, see, &all);
	assert_int_equal(sym_for_each_entry(p, libc, enter, &e), 0);
	print_message("%zu with a name, %zu without\n", e.named, e.nameless);
	assert_int_equal(e.named, all.nr);
	assert_int_equal(e.back, 0);
	assert_int_equal(e.inside, 0);
	/* libc's own functions, where its debug symbols are not installed. */
	assert_true(e.named > 3500 || e.nameless > 500);
	sym_close(p);
}

/* What is jumped to with registers on the stack is a part of a function. */
__asm__(".section .text.parts, \"ax\", @progbits\n"
        ".Lbegin:\n"
        "	.cfi_startproc\n"
        "	nop\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".Lpart:\n"
        "	.cfi_startproc\n"
        "	.cfi_def_cfa_offset 24\n"
        "	nop\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".section .data.rel.ro, \"aw\", @progbits\n"
        ".balign 8\n"
        "parts:	.quad .Lbegin, .Lpart\n"
        ".text\n");
extern const uint64_t parts[2];

static int enter_parts(const struct sym_symbol *s, void *arg)
{
	struct entries *e = arg;

	if (*s->name)
		return 0;
	e->nameless += s->addr == parts[0];
	e->inside += s->addr == parts[1];
	return 0;
}

static void parts_of_functions_are_no_entries(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct entries e = { .p = p };

	assert_int_equal(sym_for_each_entry(p, sym_module_of(p, parts[0]), enter_parts, &e), 0);
	assert_int_equal(e.nameless, 1);
	assert_int_equal(e.inside, 0);
	sym_close(p);
}

static void a_library_is_named_behind_its_function(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_symbol s;
	char text[64], want[64];

	assert_int_equal(sym_lookup(p, NULL, "getppid", &s, 1), 1);
	sym_format(p, s.addr + 2, text, sizeof(text));
	snprintf(want, sizeof(want), "getppid+0x2/0x%lx [libc.so.6]", (unsigned long)s.size);
	assert_string_equal(text, want);
	sym_format(p, 0x1234, text, sizeof(text));
	assert_string_equal(text, "0x1234");
	sym_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kind_of_program_resolves, help_setup,
		                                help_teardown),
		cmocka_unit_test_setup_teardown(an_ifunc_is_told, help_setup, help_teardown),
		cmocka_unit_test_setup_teardown(the_target_may_be_named_in_many_ways, help_setup,
		                                help_teardown),
		cmocka_unit_test_setup_teardown(the_plt_holds_no_functions, help_setup,
		                                help_teardown),
		cmocka_unit_test(functions_are_listed_by_address_and_by_glob),
		cmocka_unit_test(entries_are_those_with_a_name_and_those_without),
		cmocka_unit_test(parts_of_functions_are_no_entries),
		cmocka_unit_test(code_is_handed_out_once_and_in_order),
		cmocka_unit_test(a_library_is_named_behind_its_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
