/* SPDX-License-Identifier: MIT */
#include "help.h"

struct diffs {
	size_t nr;
	struct sym_diff last;
	char path[256];
};

static void note(const struct sym_diff *d, void *arg)
{
	struct diffs *n = arg;

	n->nr++;
	n->last = *d;
	snprintf(n->path, sizeof(n->path), "%s", d->map->path);
}

static long verify(struct target *t, struct diffs *d)
{
	struct err err = ERR_INIT;
	struct sym_proc *p = open_proc(t->pid);
	int fd = target_mem(t->pid);
	long r;

	memset(d, 0, sizeof(*d));
	r = sym_verify(p, read_mem, &fd, note, d, &err);
	if (r < 0)
		print_message("    %s\n", err.text);
	close(fd);
	sym_close(p);
	return r;
}

static void write_mem(struct target *t, uint64_t addr, const void *buf, size_t len)
{
	int fd = target_mem(t->pid);

	assert_int_equal(pwrite(fd, buf, len, (off_t)addr), len);
	close(fd);
}

static void start(struct target *t, const char *compiler)
{
	assert_true(help_run("%s -O1 -w -DNO_IFUNC -o %s tests/targets/symbols.c", compiler,
	                     help_path("t")));
	target_start(t, help_path("t"));
}

static void an_untouched_program_is_clean(void **state)
{
	static const char *const compilers[] = {
		"gcc",         "gcc -static", "gcc -static-pie",
		"gcc -no-pie", "musl-gcc",    "gcc -Wl,-z,noseparate-code"
	};

	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		struct target t;
		struct diffs d;

		start(&t, compilers[i]);
		assert_int_equal(verify(&t, &d), 0);
		assert_int_equal(d.nr, 0);
		target_stop(&t);
	}
}

static void one_byte_is_found_and_shown(void **state)
{
	struct target t;
	struct diffs d;
	uint64_t addr;

	start(&t, "gcc");
	addr = target_addr(&t, "untyped_asm") + 1;
	write_mem(&t, addr, "\xcc", 1);
	assert_int_equal(verify(&t, &d), 1);
	assert_int_equal(d.nr, 1);
	assert_int_equal(d.last.addr, addr);
	assert_int_equal(d.last.len, 1);
	assert_int_equal(d.last.file[0], 0x90);
	assert_int_equal(d.last.memory[0], 0xcc);
	assert_string_equal(d.path, help_path("t"));
	write_mem(&t, addr, "\x90", 1);
	assert_int_equal(verify(&t, &d), 0);
	target_stop(&t);
}

static void a_run_is_reported_once_across_a_page(void **state)
{
	struct target t;
	struct sym_proc *p;
	struct diffs d;
	uint8_t bytes[40];
	uint64_t addr;
	int fd;

	start(&t, "gcc -static");
	addr = (target_addr(&t, "main") + PAGE) / PAGE * PAGE - 20;
	fd = target_mem(t.pid);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)addr), sizeof(bytes));
	close(fd);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] ^= 0x55;
	write_mem(&t, addr, bytes, sizeof(bytes));
	assert_int_equal(verify(&t, &d), 40);
	assert_int_equal(d.nr, 1);
	assert_int_equal(d.last.addr, addr);
	assert_int_equal(d.last.len, 40);
	assert_memory_equal(d.last.memory, bytes, 16);
	p = open_proc(t.pid);
	assert_int_equal(sym_original(p, addr, bytes, 1), 0);
	assert_int_equal(bytes[0], d.last.file[0]);
	sym_close(p);
	target_stop(&t);
}

static void a_changed_vdso_is_no_original(void **state)
{
	struct target t;
	struct sym_proc *p;
	struct sym_symbol s;
	struct diffs d;

	start(&t, "gcc");
	p = open_proc(t.pid);
	assert_int_equal(sym_lookup(p, NULL, "__vdso_getcpu", &s, 1), 1);
	sym_close(p);
	write_mem(&t, s.addr, "\xcc", 1);
	assert_int_equal(verify(&t, &d), 1);
	assert_int_equal(d.last.addr, s.addr);
	assert_string_equal(d.path, "[vdso]");
	target_stop(&t);
}

static void relocated_text_is_left_aside(void **state)
{
	struct target t;
	struct diffs d;
	FILE *f = fopen(help_path("r.c"), "w");

	fputs("#include <stdio.h>\n#include <unistd.h>\n"
	      "__asm__(\".text\\n.globl where\\n.type where,@function\\nwhere: movabs $puts, "
	      "%rax\\n"
	      "ret\\n.size where, .-where\\n\"); void *where(void);"
	      "int main() { printf(\"where %lx\\nsum %lx\\nready\\n\", (long)&where, "
	      "(long)where());"
	      "fflush(stdout); for (;;) pause(); }",
	      f);
	fclose(f);
	assert_true(help_run("gcc -w -pie -fPIE -Wl,-z,notext -o %s %s 2>/dev/null", help_path("t"),
	                     help_path("r.c")));
	assert_true(help_run("readelf -d %s | grep -q TEXTREL", help_path("t")));
	target_start(&t, help_path("t"));
	assert_true(target_addr(&t, "sum"));
	assert_int_equal(verify(&t, &d), 0);
	/* right behind the relocated bytes */
	write_mem(&t, target_addr(&t, "where") + 10, "\xcc", 1);
	assert_int_equal(verify(&t, &d), 1);
	target_stop(&t);
}

static void an_executable_file_that_is_no_elf_is_compared_too(void **state)
{
	struct target t;
	struct diffs d;
	FILE *f = fopen(help_path("j.c"), "w");

	fputs("#include <fcntl.h>\n#include <stdio.h>\n#include <string.h>\n"
	      "#include <sys/mman.h>\n#include <unistd.h>\n"
	      "int main(int c, char **v) { char b[512]; snprintf(b, 512, \"%s.bin\", v[0]);"
	      "int fd = open(b, O_RDWR|O_CREAT|O_TRUNC, 0600); write(fd, \"hello\", 5);"
	      "char *p = mmap(0, 3 * 4096, PROT_READ|PROT_EXEC, MAP_PRIVATE, fd, 0);"
	      "printf(\"at %lx\\nready\\n\", (long)p); fflush(stdout); for (;;) pause(); }",
	      f);
	fclose(f);
	assert_true(help_run("gcc -w -o %s %s", help_path("t"), help_path("j.c")));
	target_start(&t, help_path("t"));
	assert_int_equal(verify(&t, &d), 0);
	write_mem(&t, target_addr(&t, "at") + 2, "L", 1);
	write_mem(&t, target_addr(&t, "at") + 9, "x", 1); /* behind the file's end: zero */
	assert_int_equal(verify(&t, &d), 2);
	assert_int_equal(d.nr, 2);
	assert_int_equal(d.last.file[0], 0);
	target_stop(&t);
}

static ssize_t unreadable(void *arg, uint64_t addr, void *buf, size_t len)
{
	return -ESRCH;
}

static void memory_that_cannot_be_read_is_no_clean_result(void **state)
{
	struct err err = ERR_INIT;
	struct sym_proc *p = open_proc(getpid());

	assert_int_equal(sym_verify(p, unreadable, NULL, NULL, NULL, &err), -ESRCH);
	assert_true(*err.text);
	sym_close(p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_untouched_program_is_clean),
		TEST(one_byte_is_found_and_shown),
		TEST(a_run_is_reported_once_across_a_page),
		TEST(a_changed_vdso_is_no_original),
		TEST(relocated_text_is_left_aside),
		TEST(an_executable_file_that_is_no_elf_is_compared_too),
		TEST(memory_that_cannot_be_read_is_no_clean_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
