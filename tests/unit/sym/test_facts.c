/* SPDX-License-Identifier: MIT */
/* The facts of real files, against what readelf and the compilers say of them. */
#include "facts_help.h"

#include "sym/facts_in.h"

#include <pthread.h>

#define LIB "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = {
	LIB "libc.so.6",
	LIB "libstdc++.so.6",
	LIB "libcrypto.so.3",
	LIB "libsqlite3.so.0",
	"/usr/bin/python3.11",
	"/usr/bin/redis-server",
	LIB "ld-linux-x86-64.so.2",
};
#define NR_FILES (sizeof(files) / sizeof(*files))

static struct sym_facts *facts_or_say(const char *path)
{
	struct sym_facts *f = facts_of(path);

	if (!f)
		print_message("%s is not installed: left out\n", path);
	return f;
}

/* A line of readelf -rW: does it write an address of code?  Of symbols the value is given. */
static bool parse_reloc(const struct sym_facts *f, const char *line, uint64_t *place,
                        uint64_t *target)
{
	unsigned long at, info, value;
	const char *plus;
	char type[64];
	int n = sscanf(line, "%lx %lx %63s %lx", &at, &info, type, &value), used = 0;

	/* A line of DT_RELR's is a place and nothing more, whose word the file has. */
	if (n == 1 && sscanf(line, "%*16[0-9a-f]%n", &used) == 0 && used == 16) {
		*place = at;
		return facts_fetch((struct facts *)f, at, target, 8) == 8 &&
		       facts_in_code(f, *target);
	}
	if (n != 4)
		return false;
	*place = at;
	*target = value;
	if (!strcmp(type, "R_X86_64_64")) {
		plus = strstr(line, " + ");
		*target += plus ? strtoul(plus + 3, NULL, 16) : 0;
	} else if (strncmp(type, "R_X86_64_RELATIV", 16) &&
	           strncmp(type, "R_X86_64_IRELATIV", 17) &&
	           strncmp(type, "R_X86_64_GLOB_DA", 16) &&
	           strncmp(type, "R_X86_64_JUMP_SLO", 17)) {
		return false;
	}
	return value && facts_in_code(f, *target);
}

static bool has_reloc(const struct sym_facts *f, uint64_t place, uint64_t target)
{
	size_t low = 0, high = f->nr_relocs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->reloc[mid].place < place)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < f->nr_relocs && f->reloc[low].place == place; low++)
		if (f->reloc[low].target == target)
			return true;
	return false;
}

static void relocations_are_those_that_readelf_shows(void **state)
{
	for (size_t i = 0; i < NR_FILES; i++) {
		struct sym_facts *f = facts_or_say(files[i]);
		uint64_t place, target;
		char line[4096], cmd[256];
		size_t n = 0;
		FILE *in;

		if (!f)
			continue;
		snprintf(cmd, sizeof(cmd), "readelf -rW %s", files[i]);
		in = popen(cmd, "r");
		assert_non_null(in);
		while (fgets(line, sizeof(line), in)) {
			if (!parse_reloc(f, line, &place, &target))
				continue;
			n++;
			if (!has_reloc(f, place, target) && !f->fixed)
				fail_msg("%s: %s", files[i], line);
		}
		pclose(in);
		/* A fixed module's are its words. */
		if (!f->fixed)
			assert_int_equal(n, f->nr_relocs);
		facts_check(f);
		sym_facts_free(f);
	}
}

/* A rule as readelf prints it: "rsp+24", "rbp+16", "exp". */
static bool same_cfa(struct sym_facts *f, uint64_t at, const char *cfa)
{
	static const char *const names[] = { [6] = "rbp", [7] = "rsp", [10] = "r10" };
	unsigned int reg;
	char text[32];
	int64_t off;

	if (!sym_facts_cfa(f, at, &reg, &off))
		return !strcmp(cfa, "exp");
	if (reg >= sizeof(names) / sizeof(*names) || !names[reg])
		return strcmp(cfa, "exp");
	snprintf(text, sizeof(text), "%s%+ld", names[reg], (long)off);
	return !strcmp(cfa, text);
}

/* Each row of readelf's interpretation of the CFA programs. */
static void the_cfa_is_where_readelf_says(void **state)
{
	for (size_t i = 0; i < NR_FILES; i += 2) {
		struct sym_facts *f = facts_or_say(files[i]);
		char line[4096], cmd[256], cfa[32];
		size_t bare = 0, other = 0;
		unsigned long at;
		FILE *in;

		if (!f)
			continue;
		snprintf(cmd, sizeof(cmd), "readelf -wF %s 2>/dev/null", files[i]);
		in = popen(cmd, "r");
		assert_non_null(in);
		while (fgets(line, sizeof(line), in)) {
			bool is;

			if (sscanf(line, "%16lx %31[a-z0-9+]", &at, cfa) != 2 || line[16] != ' ' ||
			    !facts_in_code(f, at))
				continue;
			is = !strcmp(cfa, "rsp+8");
			bare += is;
			other += !is;
			if (sym_facts_bare_stack(f, at) != is || !same_cfa(f, at, cfa))
				fail_msg("%s: %s", files[i], line);
		}
		pclose(in);
		assert_true(bare > 100 && other > 100);
		sym_facts_free(f);
	}
}

static void the_answer_does_not_depend_on_the_order_of_questions(void **state)
{
	struct sym_facts *f = facts_of(LIB "libc.so.6");
	enum { STEP = 7 };

	for (size_t i = 0; i < f->nr_funcs; i += 5) {
		const struct sym_facts_func *fn = &f->func[i];
		size_t n = (fn->end - fn->start + STEP - 1) / STEP;
		bool *up = calloc(n, sizeof(*up));

		for (size_t k = 0; k < n; k++)
			up[k] = sym_facts_bare_stack(f, fn->start + k * STEP);
		for (size_t k = n; k--;)
			assert_int_equal(sym_facts_bare_stack(f, fn->start + k * STEP), up[k]);
		free(up);
	}
	sym_facts_free(f);
}

static const char throwing[] =
	"#include <stdexcept>\n"
	"#include <string>\n"
	"struct guard { std::string &s; ~guard() { s += 'x'; } };\n"
	"__attribute__((noinline)) int thrower(int x) {\n"
	"	if (x == 3) throw std::runtime_error(\"three\");\n"
	"	if (x == 4) throw 4;\n"
	"	return x; }\n"
	"__attribute__((noinline)) int catcher(int x, std::string &s) {\n"
	"	guard g{ s };\n"
	"	try { return thrower(x); }\n"
	"	catch (int v) { return thrower(-v); }\n"
	"	catch (const std::exception &e) { s += e.what(); return -1; } }\n"
	"__attribute__((noinline)) int cleaner(int x, std::string &s) {\n"
	"	guard g{ s }; return thrower(x) + thrower(x + 1); }\n"
	"int main(int argc, char **argv) {\n"
	"	std::string s;\n"
	"	return catcher(argc, s) + cleaner(argc, s) + (int)s.size(); }\n";

static void write_text(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static const struct sym_facts_func *around(const struct sym_facts *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nr_funcs; i++)
		if (addr >= f->func[i].start && addr < f->func[i].end)
			return &f->func[i];
	return NULL;
}

/* With -fcf-protection each has an endbr64, as each start of a function. */
static void check_pads(const struct sym_facts *f)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t found = 0;

	assert_true(f->nr_pads >= 4);
	for (size_t i = 0; i < f->nr_code; i++)
		for (size_t at = 0; at + 4 <= f->code[i].size; at++) {
			uint64_t addr = f->code[i].addr + at;
			const struct sym_facts_func *fn = around(f, addr);

			if (memcmp(f->code[i].bytes + at, endbr64, 4) || !fn ||
			    (fn->start == addr && !fn->part))
				continue;
			if (facts_has_extra(f, addr))
				found++;
			else
				fail_msg("0x%lx isn't known", (unsigned long)addr);
		}
	assert_int_equal(found, f->nr_pads);
	for (size_t i = 0; i < f->nr_pads; i++) {
		assert_true(facts_has_extra(f, f->pad[i].addr));
		assert_non_null(facts_func(f, f->pad[i].func));
		assert_true(!i || f->pad[i].func >= f->pad[i - 1].func);
	}
}

static void each_landing_pad_is_known(void **state)
{
	static const char *const how[] = {
		"g++ -O2",         "g++ -O0",
		"g++ -O2 -no-pie", "g++ -O2 -fno-reorder-blocks-and-partition",
		"clang++ -O2",     "clang++ -O0",
	};

	write_text(help_path("throw.cc"), throwing);
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		struct sym_facts *f;

		assert_true(help_run("%s -fcf-protection=full -o %s %s", how[i], help_path("throw"),
		                     help_path("throw.cc")));
		f = facts_of(help_path("throw"));
		check_pads(f);
		facts_check(f);
		sym_facts_free(f);
		assert_true(help_run("strip %s", help_path("throw")));
		f = facts_of(help_path("throw"));
		check_pads(f);
		sym_facts_free(f);
	}
}

static const char splitting[] =
	"void rare(char *, int) __attribute__((cold));\n"
	"char *volatile sink;\n"
	"void rare(char *b, int x) { sink = b + x; }\n"
	"__attribute__((noinline)) int framed(int x, int y) {\n"
	"	char b[64]; sink = b;\n"
	"	if (__builtin_expect(x == 17, 0)) { rare(b, y); rare(b, y + 1); __builtin_abort(); "
	"}\n"
	"	return b[x] + y; }\n"
	"__attribute__((noinline)) int plain(int x, int y) {\n"
	"	if (__builtin_expect(x == 18, 0)) { sink = 0; rare(0, x); __builtin_abort(); }\n"
	"	return x * y; }\n"
	"int main(int c, char **v) { return framed(c, 2) + plain(c, 3); }\n";

static size_t parts(const struct sym_facts *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nr_funcs; i++)
		n += f->func[i].part;
	return n;
}

static void a_cold_part_is_told_by_its_name_or_its_frame(void **state)
{
	struct sym_facts *f;
	size_t named;

	write_text(help_path("cold.c"), splitting);
	assert_true(help_run("gcc -O2 -o %s %s && nm %s | grep -q 'framed.cold' && "
	                     "nm %s | grep -q 'plain.cold'",
	                     help_path("cold"), help_path("cold.c"), help_path("cold"),
	                     help_path("cold")));
	f = facts_of(help_path("cold"));
	named = parts(f);
	assert_int_equal(named, 2);
	sym_facts_free(f);
	/* Without its name it is told by its frame, if it has one. */
	assert_true(help_run("strip %s", help_path("cold")));
	f = facts_of(help_path("cold"));
	assert_in_range(parts(f), 1, named);
	sym_facts_free(f);
	/* Stripped, and full of them. */
	f = facts_of(LIB "libstdc++.so.6");
	assert_true(parts(f) > 100);
	assert_true(parts(f) < f->nr_funcs / 4);
	sym_facts_free(f);
}

/* The list of a compiler's nops is no list of places that anybody jumps to. */
static void nops_for_tracers_are_no_targets(void **state)
{
	struct sym_facts *f;
	char src[128], so[128];
	FILE *c;

	snprintf(src, sizeof(src), "%s", help_path("nops.c"));
	snprintf(so, sizeof(so), "%s", help_path("nops.so"));
	c = fopen(src, "w");
	assert_non_null(c);
	fputs("int a(int x) { return x + 1; }\nint b(int x) { return x + 2; }\n"
	      "int (*table[])(int) = { a, b };\n",
	      c);
	fclose(c);
	assert_true(help_run("gcc -shared -fPIC -fcf-protection=branch "
	                     "-fpatchable-function-entry=5 -o %s %s",
	                     so, src));
	f = facts_of(so);
	/* a and b, and what the start files have, but nothing inside of a and b */
	assert_true(f->nr_relocs >= 2);
	for (size_t i = 0; i < f->nr_relocs; i++)
		for (size_t k = 0; k < f->nr_funcs; k++)
			assert_false(f->reloc[i].target > f->func[k].start &&
			             f->reloc[i].target < f->func[k].end);
	sym_facts_free(f);
}

/* As Go's goexit is, to whose second instruction goroutines return. */
static void a_call_behind_a_nop_is_entered_by_its_address(void **state)
{
	struct sym_facts *f;
	size_t i, found = 0;

	write_text(help_path("goexit.c"),
	           "__asm__(\".text; .type out,@function; out: nop; call end@plt; nop;\"\n"
	           "        \".size out,.-out\");\n"
	           "void end(void) {}\n");
	assert_true(help_run("gcc -shared -fPIC -fcf-protection=none -o %s %s",
	                     help_path("goexit.so"), help_path("goexit.c")));
	f = facts_of(help_path("goexit.so"));
	for (i = 0; i < f->nr_funcs; i++)
		found += f->func[i].end == f->func[i].start + 7 &&
		         facts_has_extra(f, f->func[i].start + 1);
	assert_int_equal(found, 1);
	sym_facts_free(f);
}

static void packed_relocations_say_the_same_as_others(void **state)
{
	static const char source[] = "int f0(void) { return 0; }\n"
				     "static int f1(void) { return 1; }\n"
				     "static int f2(void) { return 2; }\n"
				     "#define F f1, 0, f2, f2, 0, 0, f1\n"
				     "int (*table[])(void) = { F, F, F, F, F, F, F, F, F, F,\n"
				     "	F, F, F, F, F, F, F, F, F, F };\n"
				     "int far[900] = { 1 };\n"
				     "int (*more[])(void) = { F, F };\n"
				     "int data, *no_code[] = { &data, far };\n";
	struct sym_facts *plain, *packed;

	write_text(help_path("relr.c"), source);
	assert_true(
		help_run("gcc -shared -fPIC -o %s %s", help_path("plain"), help_path("relr.c")));
	assert_true(help_run("gcc -shared -fPIC -Wl,-z,pack-relative-relocs -o %s %s && "
	                     "readelf -SW %s | grep -q relr.dyn",
	                     help_path("packed"), help_path("relr.c"), help_path("packed")));
	plain = facts_of(help_path("plain"));
	packed = facts_of(help_path("packed"));
	assert_true(plain->nr_relocs >= 22 * 4);
	assert_int_equal(plain->nr_relocs, packed->nr_relocs);
	/* PT_DYNAMIC, which differs, lies behind the first two: the pointers to init and fini. */
	for (size_t i = 2; i < packed->nr_relocs; i++)
		assert_int_equal(packed->reloc[i].place - packed->reloc[2].place,
		                 plain->reloc[i].place - plain->reloc[2].place);
	for (size_t i = 1; i < packed->nr_relocs; i++)
		assert_int_equal(packed->reloc[i].target - packed->reloc[0].target,
		                 plain->reloc[i].target - plain->reloc[0].target);
	sym_facts_free(plain);
	sym_facts_free(packed);
}

static void words_of_a_fixed_program_are_found_without_relocations(void **state)
{
	static const char source[] =
		"__attribute__((noinline)) int run(const unsigned char *p) {\n"
		"	static const void *const op[] = { &&add, &&twice, &&end };\n"
		"	int x = 0; goto *op[*p];\n"
		"add: x++; goto *op[*++p];\n"
		"twice: x *= 2; goto *op[*++p];\n"
		"end: return x; }\n"
		"int main(int c, char **v) { return run((unsigned char *)v[0]); }\n";
	struct sym_facts *f;
	uint64_t op, run;
	FILE *in;

	write_text(help_path("fixed.c"), source);
	assert_true(help_run("gcc -O1 -static -no-pie -o %s %s && nm %s | sed -n "
	                     "'s/ d op.0//p;s/ T run$//p' | sort -r >%s",
	                     help_path("fixed"), help_path("fixed.c"), help_path("fixed"),
	                     help_path("addr")));
	in = fopen(help_path("addr"), "r");
	assert_int_equal(fscanf(in, "%lx %lx", &op, &run), 2);
	fclose(in);
	f = facts_of(help_path("fixed"));
	assert_true(f->fixed);
	for (size_t i = 0; i < 3; i++) {
		size_t k = 0;

		while (k < f->nr_relocs && f->reloc[k].place != op + 8 * i)
			k++;
		assert_true(k < f->nr_relocs);
		assert_in_range(f->reloc[k].target, run + 1, run + 100);
	}
	facts_check(f);
	sym_facts_free(f);
}

static void writable_memory_is_not_read(void **state)
{
	struct sym_facts *f;
	uint64_t addr;
	char text[8] = "";
	FILE *in;

	write_text(help_path("data.c"),
	           "const char fast[8] = \"constan\"; char slow[8] = \"changes\";\n"
	           "void f(void) {}\n");
	assert_true(help_run(
		"gcc -shared -o %s %s && nm %s | sed -n 's/ R fast//p;s/ D slow//p' >%s",
		help_path("data"), help_path("data.c"), help_path("data"), help_path("addr")));
	f = facts_of(help_path("data"));
	in = fopen(help_path("addr"), "r");
	assert_int_equal(fscanf(in, "%lx", &addr), 1);
	assert_int_equal(sym_facts_read(f, addr, text, 8), 8);
	assert_string_equal(text, "constan");
	assert_int_equal(fscanf(in, "%lx", &addr), 1);
	assert_int_equal(sym_facts_read(f, addr, text, 8), 0);
	assert_int_equal(sym_facts_read(f, UINT64_MAX - 3, text, 8), 0);
	fclose(in);
	sym_facts_free(f);
}

static void *load_in_thread(void *facts)
{
	struct err err = ERR_INIT;

	return sym_facts_load(facts, &err) ? NULL : facts;
}

static void another_thread_loads_while_the_process_goes_on(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *m = sym_module_find(p, "libc.so.6");
	struct err err = ERR_INIT;
	struct sym_facts *f;
	uint8_t bytes[64];
	pthread_t th;
	void *ret;
	uint64_t bias = sym_module_bias(m);

	assert_int_equal(sym_facts_open(m, &f, &err), 0);
	assert_int_equal(pthread_create(&th, NULL, load_in_thread, f), 0);
	sym_close(p);
	assert_int_equal(pthread_join(th, &ret), 0);
	assert_ptr_equal(ret, f);
	facts_check(f);
	p = open_proc(getpid());
	for (size_t i = 0; i < f->nr_code; i++) {
		size_t n = f->code[i].size < sizeof(bytes) ? f->code[i].size : sizeof(bytes);

		assert_int_equal(sym_original(p, f->code[i].addr + bias, bytes, n), 0);
		assert_memory_equal(bytes, f->code[i].bytes, n);
	}
	sym_close(p);
	sym_facts_free(f);
}

static void signal_frames_and_plts_are_no_functions(void **state)
{
	struct sym_proc *p = open_proc(getpid());
	struct sym_module *m = sym_module_find(p, "libc.so.6");
	const struct fdes *fdes = module_fdes(m);
	struct sym_facts *f;
	struct err err = ERR_INIT;
	size_t signals = 0;

	assert_int_equal(sym_facts(m, &f, &err), 0);
	for (size_t i = 0; i < fdes->nr; i++) {
		if (!fdes->fde[i].signal) {
			assert_non_null(facts_func(f, fdes->fde[i].start));
			continue;
		}
		signals++;
		for (size_t k = 0; k < f->nr_funcs; k++)
			assert_true(f->func[k].end <= fdes->fde[i].start + 1 ||
			            f->func[k].start >= fdes->fde[i].end);
	}
	assert_int_equal(signals, 1);
	for (unsigned int i = 1; i < m->img->nr_sh; i++)
		if (section_is_plt(m->img, &m->img->sh[i])) {
			assert_true(facts_in_code(f, m->img->sh[i].sh_addr));
			assert_null(facts_func(f, m->img->sh[i].sh_addr));
		}
	sym_facts_free(f);
	sym_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relocations_are_those_that_readelf_shows),
		cmocka_unit_test(the_cfa_is_where_readelf_says),
		cmocka_unit_test(the_answer_does_not_depend_on_the_order_of_questions),
		cmocka_unit_test(each_landing_pad_is_known),
		cmocka_unit_test(a_cold_part_is_told_by_its_name_or_its_frame),
		cmocka_unit_test(nops_for_tracers_are_no_targets),
		cmocka_unit_test(a_call_behind_a_nop_is_entered_by_its_address),
		cmocka_unit_test(packed_relocations_say_the_same_as_others),
		cmocka_unit_test(words_of_a_fixed_program_are_found_without_relocations),
		cmocka_unit_test(writable_memory_is_not_read),
		cmocka_unit_test(another_thread_loads_while_the_process_goes_on),
		cmocka_unit_test(signal_frames_and_plts_are_no_functions),
	};

	return cmocka_run_group_tests(tests, help_setup, help_teardown);
}
