/* SPDX-License-Identifier: MIT */
/* Symbols of real libraries against what binutils say of them. */
#include "help.h"

static struct sym_proc *self;

static int open_self(void **state)
{
	self = open_proc(getpid());
	return 0;
}

static int close_self(void **state)
{
	sym_close(self);
	return 0;
}

/* One line of "nm -D": address, kind, name without its version. */
static bool nm_line(const char *line, uint64_t *addr, char *kind, char *name)
{
	if (sscanf(line, "%lx %c %511s", addr, kind, name) != 3)
		return false;
	name[strcspn(name, "@")] = 0;
	return strchr("TWi", *kind) && *name;
}

static bool is_listed(struct sym_module *m, const char *name, uint64_t addr)
{
	struct sym_symbol s[16];
	size_t nr = sym_lookup(self, m, name, s, 16);

	for (size_t i = 0; i < nr && i < 16; i++)
		if (s[i].addr == addr && s[i].func)
			return true;
	return false;
}

/* A stripped copy: only what nm -D sees is there to be counted. */
static size_t count_without_debug(struct sym_module *m)
{
	struct symtab t = { 0 };
	size_t nr = 0;

	symtab_load(&t, m->img, NULL, m->bias, module_fdes(m));
	for (size_t i = 0; i < t.nr; i++)
		nr += t.sym[i].func && t.sym[i].global &&
		      !(i && symbol_is_alias(&t.sym[i - 1], &t.sym[i]));
	symtab_free(&t);
	return nr;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void libc_has_the_functions_that_nm_lists(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	char cmd[512], line[1024], **seen = NULL;
	size_t nr = 0, room = 0, unique = 0;
	FILE *nm;

	assert_non_null(m);
	snprintf(cmd, sizeof(cmd), "nm -D --defined-only %s", sym_module_path(m));
	nm = popen(cmd, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		char name[512], kind, *text;
		uint64_t addr;

		if (!nm_line(line, &addr, &kind, name))
			continue;
		assert_true(is_listed(m, name, addr + sym_module_bias(m)));
		assert_true(asprintf(&text, "%lx %s", (unsigned long)addr, name) > 0);
		assert_int_equal(sym_grow(&seen, &room, nr, sizeof(*seen)), 0);
		seen[nr++] = text;
	}
	pclose(nm);
	assert_true(nr > 1000);
	qsort(seen, nr, sizeof(*seen), by_text);
	for (size_t i = 0; i < nr; i++)
		unique += !i || strcmp(seen[i], seen[i - 1]);
	if (image_section(m->img, ".symtab"))
		print_message("    count skipped: this libc has a .symtab\n");
	else
		assert_int_equal(count_without_debug(m), unique);
	for (size_t i = 0; i < nr; i++)
		free(seen[i]);
	free(seen);
}

static void every_function_has_a_size_and_resolves_to_its_address(void **state)
{
	for (size_t i = 0; i < sym_nr_modules(self); i++) {
		struct sym_module *m = sym_module_at(self, i);
		const struct symtab *t = module_symbols(m);

		for (size_t k = 0; k < t->nr; k++) {
			struct sym_symbol s;
			uint64_t off;

			if (!t->sym[k].func)
				continue;
			assert_true(t->sym[k].size > 0);
			assert_true(sym_resolve(self, t->sym[k].addr + m->bias, &s, &off));
			assert_int_equal(off, 0);
			assert_true(s.func);
		}
	}
}

static void a_version_selects_one_definition(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	struct sym_symbol s[4], old;
	size_t nr = sym_lookup(self, m, "realpath", s, 4);

	if (nr < 2) {
		print_message("    skipped: this libc has one realpath only\n");
		return;
	}
	assert_int_equal(nr, 2);
	assert_false(s[0].old);
	assert_true(s[1].old);
	assert_string_equal(s[0].version, "GLIBC_2.3");
	assert_string_equal(s[1].version, "GLIBC_2.2.5");
	assert_int_equal(sym_lookup(self, m, "realpath@GLIBC_2.2.5", &old, 1), 1);
	assert_int_equal(old.addr, s[1].addr);
	assert_string_equal(old.name, "realpath");
	assert_int_equal(sym_lookup(self, m, "realpath@@GLIBC_2.3", &old, 1), 1);
	assert_int_equal(old.addr, s[0].addr);
	assert_int_equal(sym_lookup(self, m, "realpath@GLIBC_9", &old, 1), 0);
}

/* .dynsym has its versions in tables of their own. */
static void versions_are_known_without_debug_symbols(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	size_t old = 0, current = 0;
	struct symtab t = { 0 };

	if (image_section(m->img, ".symtab")) {
		print_message("    skipped: this libc has a .symtab\n");
		return;
	}
	symtab_load(&t, m->img, NULL, m->bias, module_fdes(m));
	for (size_t i = 0; i < t.nr; i++) {
		if (!t.sym[i].func)
			continue;
		assert_non_null(t.sym[i].version);
		assert_non_null(strstr(t.sym[i].version, "GLIBC"));
		*(t.sym[i].old ? &old : &current) += 1;
	}
	assert_true(old > 10 && current > 1000);
	symtab_free(&t);
}

static void two_versions_at_one_address_count_once(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	struct sym_symbol s;
	struct seen seen = { "pthread_once", 0, { 0 } };

	assert_int_equal(sym_lookup(self, m, "pthread_once", &s, 1), 1);
	sym_for_each_func(self, m, "pthread_once", see, &seen);
	assert_int_equal(seen.nr, 1);
	if (!sym_lookup(self, m, "pthread_once@GLIBC_2.34", &s, 1)) {
		print_message("    rest skipped: libc is older than 2.34\n");
		return;
	}
	assert_int_equal(sym_lookup(self, m, "pthread_once@GLIBC_2.2.5", &s, 1), 1);
}

static void names_of_one_address_show_the_plain_one(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	struct sym_symbol s, r;

	assert_int_equal(sym_lookup(self, m, "__getpid", &s, 1), 1);
	assert_true(sym_resolve(self, s.addr, &r, NULL));
	assert_string_equal(r.name, "getpid");
}

static void more_hits_than_room_are_counted(void **state)
{
	struct sym_symbol s[2] = { 0 };

	assert_true(sym_lookup(self, NULL, "_init", NULL, 0) >= 1);
	s[1].name = "untouched";
	sym_lookup(self, NULL, "_init", s, 1);
	assert_string_equal(s[1].name, "untouched");
	assert_int_equal(sym_lookup(self, NULL, "", s, 1), 0);
	assert_int_equal(sym_lookup(self, NULL, "@", s, 1), 0);
	assert_int_equal(sym_lookup(self, NULL, "no such function", s, 1), 0);
}

static void debug_symbols_are_taken_by_build_id(void **state)
{
	struct sym_module *m = sym_module_find(self, "libc.so.6");
	const char *id = sym_module_build_id(m);
	struct sym_symbol s;
	char path[256];

	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	if (access(path, R_OK)) {
		print_message("    skipped: no %s (package libc6-dbg)\n", path);
		return;
	}
	/* local, so in no dynamic symbol table */
	assert_int_equal(sym_lookup(self, m, "__restore_rt", &s, 1), 1);
	assert_false(s.global);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc_has_the_functions_that_nm_lists),
		cmocka_unit_test(every_function_has_a_size_and_resolves_to_its_address),
		cmocka_unit_test(a_version_selects_one_definition),
		cmocka_unit_test(versions_are_known_without_debug_symbols),
		cmocka_unit_test(two_versions_at_one_address_count_once),
		cmocka_unit_test(names_of_one_address_show_the_plain_one),
		cmocka_unit_test(more_hits_than_room_are_counted),
		cmocka_unit_test(debug_symbols_are_taken_by_build_id),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
