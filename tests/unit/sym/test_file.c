/* SPDX-License-Identifier: MIT */
/* Files that are gone, replaced, out of reach or somewhere else. */
#include "help.h"

#include <sched.h>
#include <sys/mount.h>

#define NOBODY 65534

static void build(const char *flags)
{
	assert_true(help_run("gcc -O1 -w %s -o %s tests/targets/symbols.c", flags, help_path("t")));
}

/* Are symbols and original bytes those of the program that runs? */
static void check_right(const struct target *t)
{
	uint64_t addr = target_addr(t, "global_work");
	uint8_t file[4], memory[4];
	struct sym_proc *p = open_proc(t->pid);
	struct sym_symbol s;
	int fd = target_mem(t->pid);

	assert_int_equal(sym_lookup(p, NULL, "global_work", &s, 1), 1);
	assert_int_equal(s.addr, addr);
	assert_true(sym_module_is_exe(s.module));
	assert_int_equal(sym_original(p, addr, file, sizeof(file)), 0);
	assert_int_equal(pread(fd, memory, sizeof(memory), (off_t)addr), sizeof(memory));
	assert_memory_equal(file, memory, sizeof(file));
	close(fd);
	sym_close(p);
}

/* Without the privilege for map_files, the names come from memory and no byte is vouched for. */
static void check_memory_only(const struct target *t)
{
	uint64_t addr = target_addr(t, "global_work");
	struct err err = ERR_INIT;
	struct sym_proc *p = open_proc(t->pid);
	struct sym_symbol s;
	uint8_t byte;
	int fd = target_mem(t->pid);

	assert_int_equal(sym_lookup(p, NULL, "global_work", &s, 1), 1);
	assert_int_equal(s.addr, addr);
	assert_int_equal(sym_original(p, addr, &byte, 1), -ENOENT);
	assert_int_equal(sym_verify(p, read_mem, &fd, NULL, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/t"));
	assert_int_equal(sym_lookup(p, NULL, "getppid", &s, 1), 1);
	assert_int_equal(sym_original(p, s.addr, &byte, 1), 0);
	close(fd);
	sym_close(p);
}

/* Runs check as another user, in a child: cmocka's longjmp stays in it. */
static void as_nobody(void (*check)(const struct target *), const struct target *t)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
			_exit(2);
		prctl(PR_SET_DUMPABLE, 1);
		check(t);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static bool is_root(void)
{
	if (!geteuid())
		return true;
	print_message("    skipped: needs root\n");
	return false;
}

static void a_deleted_file_is_read_through_map_files(void **state)
{
	struct target t;

	if (!is_root())
		return;
	build("");
	target_start(&t, help_path("t"));
	assert_int_equal(unlink(help_path("t")), 0);
	check_right(&t);
	target_stop(&t);
}

static void a_module_stays_the_same_when_its_file_is_deleted(void **state)
{
	struct err err = ERR_INIT;
	struct sym_module *m;
	struct sym_proc *p;
	struct target t;
	uint8_t byte;

	build("");
	target_start(&t, help_path("t"));
	p = open_proc(t.pid);
	m = sym_module_of(p, target_addr(&t, "main"));
	unlink(help_path("t"));
	assert_int_equal(sym_refresh(p, &err), 0);
	assert_ptr_equal(sym_module_of(p, target_addr(&t, "main")), m);
	assert_ptr_equal(sym_module_of(p, target_addr(&t, "global_object")), m);
	assert_true(sym_module_is_exe(m));
	assert_true(sym_map_find(p, target_addr(&t, "main"))->deleted);
	assert_int_equal(sym_original(p, target_addr(&t, "main"), &byte, 1), 0);
	sym_close(p);
	target_stop(&t);
}

static void a_fifo_in_the_place_of_the_file_does_not_block(void **state)
{
	struct target t;

	if (!is_root())
		return;
	build("");
	target_start(&t, help_path("t"));
	unlink(help_path("t"));
	assert_int_equal(mkfifo(help_path("t"), 0666), 0);
	alarm(600);
	check_right(&t);
	alarm(0);
	target_stop(&t);
}

static void another_program_in_the_place_of_the_file_is_not_believed(void **state)
{
	struct target t;

	if (!is_root())
		return;
	build("");
	target_start(&t, help_path("t"));
	unlink(help_path("t"));
	build("-O3 -DOTHER -fno-inline -falign-functions=64");
	check_right(&t);
	unlink(help_path("t"));
	assert_int_equal(symlink("/bin/sh", help_path("t")), 0);
	check_right(&t);
	target_stop(&t);
}

static void another_user_reads_his_own_process(void **state)
{
	struct target t;

	if (!is_root())
		return;
	build("");
	target_start_as(&t, help_path("t"), NOBODY);
	as_nobody(check_right, &t);
	target_stop(&t);
}

static void of_a_deleted_file_another_user_sees_dynamic_symbols(void **state)
{
	static const char *const flags[] = { "-rdynamic", "-rdynamic -Wl,--hash-style=sysv",
		                             "-rdynamic -no-pie -fno-pie" };

	if (!is_root())
		return;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct target t;

		build(flags[i]);
		target_start_as(&t, help_path("t"), NOBODY);
		unlink(help_path("t"));
		as_nobody(check_memory_only, &t);
		target_stop(&t);
	}
}

/* The name that maps shows is one of the target's mount namespace. */
static void a_file_of_another_mount_namespace_is_found(void **state)
{
	char self[4096], inner[512];
	struct target t;
	int old, cwd = open(".", O_PATH);

	if (!is_root())
		return;
	build("");
	snprintf(inner, sizeof(inner), "%s/inner", help_dir);
	assert_int_equal(mkdir(inner, 0755), 0);
	old = open("/proc/self/ns/mnt", O_RDONLY);
	snprintf(self, sizeof(self), "%s/t", inner);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", inner, "tmpfs", 0, NULL)) {
		print_message("    skipped: no mount namespaces here\n");
		return;
	}
	assert_true(help_run("cp %s %s", help_path("t"), self));
	target_start_as(&t, self, NOBODY);
	assert_int_equal(setns(old, CLONE_NEWNS), 0);
	assert_int_equal(fchdir(cwd), 0); /* setns went to the root */
	close(cwd);
	close(old);
	assert_int_equal(access(self, F_OK), -1);
	as_nobody(check_right, &t); /* without map_files */
	target_stop(&t);
}

static void a_file_in_a_chroot_is_found(void **state)
{
	struct sym_proc *p;
	struct sym_symbol s;
	int fds[2];
	char byte;
	pid_t pid;

	if (!is_root())
		return;
	build("-static -DNO_IFUNC");
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		if (chroot(help_dir) || chdir("/"))
			_exit(2);
		execl("/t", "/t", NULL);
		_exit(3);
	}
	close(fds[1]); /* a child that can't is an end of file */
	assert_int_equal(read(fds[0], &byte, 1), 1);
	p = open_proc(pid);
	assert_int_equal(sym_lookup(p, NULL, "local_work", &s, 1), 1);
	assert_int_equal(sym_original(p, s.addr, &byte, 1), 0);
	assert_non_null(sym_module_find(p, "/t"));
	sym_close(p);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
}

static void one_library_at_two_places_is_two_modules(void **state)
{
	struct sym_proc *p;
	struct sym_symbol s[4];
	struct target t;
	FILE *f = fopen(help_path("l.c"), "w");

	fputs("int twice(void) { return 2; }", f);
	fclose(f);
	f = fopen(help_path("p.c"), "w");
	fputs("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n"
	      "int main(int c, char **v) { char b[512]; snprintf(b, 512, \"%s.so\", v[0]);"
	      "void *x = dlmopen(LM_ID_BASE, b, RTLD_NOW), *y = dlmopen(LM_ID_NEWLM, b, RTLD_NOW);"
	      "printf(\"one %lx\\ntwo %lx\\nready\\n\", (long)dlsym(x, \"twice\"),"
	      "(long)dlsym(y, \"twice\")); fflush(stdout); pause(); }",
	      f);
	fclose(f);
	assert_true(help_run("gcc -w -shared -fPIC -o %s %s && gcc -w -o %s %s", help_path("t.so"),
	                     help_path("l.c"), help_path("t"), help_path("p.c")));
	target_start(&t, help_path("t"));
	p = open_proc(t.pid);
	assert_int_equal(sym_lookup(p, NULL, "twice", s, 4), 2);
	assert_ptr_not_equal(s[0].module, s[1].module);
	for (int i = 0; i < 2; i++)
		assert_true(s[i].addr == target_addr(&t, "one") ||
		            s[i].addr == target_addr(&t, "two"));
	assert_non_null(sym_module_find(p, "t.so"));
	sym_close(p);
	target_stop(&t);
}

static void the_vdso_has_symbols_and_our_own_bytes(void **state)
{
	struct sym_proc *p;
	struct sym_symbol s;
	struct target t;
	uint8_t file[64], memory[64];
	int fd;

	build("");
	target_start(&t, help_path("t"));
	p = open_proc(t.pid);
	fd = target_mem(t.pid);
	assert_int_equal(sym_lookup(p, NULL, "__vdso_clock_gettime", &s, 1), 1);
	assert_int_equal(sym_original(p, s.addr, file, sizeof(file)), 0);
	assert_int_equal(pread(fd, memory, sizeof(memory), (off_t)s.addr), sizeof(memory));
	assert_memory_equal(file, memory, sizeof(file));
	close(fd);
	sym_close(p);
	target_stop(&t);
}

static void any_thread_serves_where_the_leader_is_gone(void **state)
{
	struct sym_proc *p;
	struct sym_symbol s;
	struct target t;
	FILE *f = fopen(help_path("p.c"), "w");

	fputs("#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n"
	      "#include <sys/syscall.h>\n"
	      "int here(void) { char s = 0; FILE *f = fopen(\"/proc/self/stat\", \"r\");"
	      " fscanf(f, \"%*d %*s %c\", &s); fclose(f); return s != 'Z'; }\n"
	      "void *run(void *a) { while (here()) usleep(1000); printf(\"tid %lx\\nready\\n\","
	      "syscall(SYS_gettid)); fflush(stdout); for (;;) pause(); }"
	      "int main() { pthread_t t; pthread_create(&t, 0, run, 0); pthread_exit(0); }",
	      f);
	fclose(f);
	assert_true(help_run("gcc -w -o %s %s", help_path("t"), help_path("p.c")));
	target_start(&t, help_path("t"));
	p = open_proc((pid_t)target_addr(&t, "tid"));
	assert_int_equal(sym_lookup(p, NULL, "run", &s, 1), 1);
	assert_true(sym_module_is_exe(s.module));
	sym_close(p);
	target_stop(&t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_deleted_file_is_read_through_map_files),
		TEST(a_module_stays_the_same_when_its_file_is_deleted),
		TEST(a_fifo_in_the_place_of_the_file_does_not_block),
		TEST(another_program_in_the_place_of_the_file_is_not_believed),
		TEST(another_user_reads_his_own_process),
		TEST(of_a_deleted_file_another_user_sees_dynamic_symbols),
		TEST(a_file_of_another_mount_namespace_is_found),
		TEST(a_file_in_a_chroot_is_found),
		TEST(one_library_at_two_places_is_two_modules),
		TEST(the_vdso_has_symbols_and_our_own_bytes),
		TEST(any_thread_serves_where_the_leader_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
