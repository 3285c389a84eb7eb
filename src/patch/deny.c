/* SPDX-License-Identifier: MIT */
/*
 * What libc does with all signals blocked, or with our handler taken away, kills
 * the process at an int3: the child of posix_spawn on its way to execve, fork,
 * thread creation, raise.
 * A jump needs no signal, so it may stand there.
 * The names are glibc's and musl's public ones; an address is compared with
 * what they stand for in the module that is libc.
 *
 * What returns twice, or reads its own return address, can't have that address
 * replaced.
 */
#include "patch/deny.h"
#include "patch/inplace.h"

#include <string.h>

static const char blocked[] = "it runs with all signals blocked, where a breakpoint kills";
static const char partly[] =
	"it blocks all signals inside, where a breakpoint kills; its entry can be probed";
static const char spawned[] =
	"the child of posix_spawn runs it when it has taken its handlers away, and "
	"a breakpoint kills";
static const char twice[] = "it returns twice or changes stacks: its return address must stay";
static const char nameless[] = "it is no function that others may call: it may be one of those "
			       "that libc runs with all signals blocked, where a "
			       "breakpoint kills";
static const char nameless_musl[] =
	"it is no function that others may call: it may be one of those "
	"that musl runs with all signals blocked or without a stack";
static const char stackless[] = "it has given its stack back";
static const char no_return[] =
	"it may run with all signals blocked, on the way to another program: "
	"it can be probed by a jump, but its returns cannot";
static const char reads[] = "it looks at its own return address";
const char deny_start[] =
	"nobody calls it: the program's arguments are where a return address would be";

#define MUSL(name, why)                          \
	{                                        \
		name, DENY_TRAP, why, true, NULL \
	}

static const struct deny_entry list[] = {
	{ "execve", DENY_TRAP, blocked, false, NULL },
	{ "execveat", DENY_TRAP, blocked, false, NULL },
	{ "fexecve", DENY_TRAP, blocked, false, NULL },
	{ "execv", DENY_TRAP, blocked, false, NULL },
	{ "execvp", DENY_TRAP, blocked, false, NULL },
	{ "execvpe", DENY_TRAP, blocked, false, NULL },
	{ "__execvpex", DENY_TRAP, blocked, false, NULL },
	{ "sigprocmask", DENY_TRAP, blocked, false, NULL },
	{ "pthread_sigmask", DENY_TRAP, blocked, false, NULL },
	{ "dup2", DENY_TRAP, blocked, false, NULL },
	{ "chdir", DENY_TRAP, blocked, false, NULL },
	{ "fchdir", DENY_TRAP, blocked, false, NULL },
	{ "setsid", DENY_TRAP, blocked, false, NULL },
	{ "setpgid", DENY_TRAP, blocked, false, NULL },
	{ "tcsetpgrp", DENY_TRAP, blocked, false, NULL },
	{ "sched_setparam", DENY_TRAP, blocked, false, NULL },
	{ "sched_setscheduler", DENY_TRAP, blocked, false, NULL },
	{ "closefrom", DENY_TRAP, blocked, false, NULL },
	{ "close_range", DENY_TRAP, blocked, false, NULL },
	{ "_exit", DENY_TRAP, blocked, false, NULL },
	{ "_Exit", DENY_TRAP, blocked, false, NULL },
	{ "clone", DENY_TRAP, blocked, false, NULL },
	{ "__clone", DENY_TRAP, blocked, false, NULL },
	{ "__clone3", DENY_TRAP, blocked, false, NULL },
	{ "__clone_internal", DENY_TRAP, blocked, false, NULL },
	{ "getuid", DENY_TRAP, blocked, false, NULL },
	{ "getgid", DENY_TRAP, blocked, false, NULL },
	{ "getpid", DENY_TRAP, blocked, false, NULL },
	{ "getpagesize", DENY_TRAP, blocked, false, NULL },
	{ "wait4", DENY_TRAP, blocked, false, NULL },
	{ "waitpid", DENY_TRAP, blocked, false, NULL },
	{ "sigtimedwait", DENY_TRAP, blocked, false, NULL },
	{ "sigwaitinfo", DENY_TRAP, blocked, false, NULL },
	{ "sigwait", DENY_TRAP, blocked, false, NULL },
	{ "madvise", DENY_TRAP, blocked, false, NULL },
	{ "munmap", DENY_TRAP, blocked, false, NULL },
	{ "__close_nocancel", DENY_TRAP, blocked, false, NULL },
	{ "__open_nocancel", DENY_TRAP, blocked, false, NULL },
	{ "__open64_nocancel", DENY_TRAP, blocked, false, NULL },
	{ "__libc_sigaction", DENY_TRAP, blocked, false, NULL },
	{ "__ctype_init", DENY_TRAP, blocked, false, NULL },
	{ "__call_tls_dtors", DENY_TRAP, blocked, false, NULL },
	{ "__lll_lock_wait_private", DENY_TRAP, blocked, false, NULL },
	{ "__lll_lock_wake_private", DENY_TRAP, blocked, false, NULL },
	{ "_dl_allocate_tls_init", DENY_TRAP, blocked, false, NULL },
	{ "start_thread", DENY_TRAP, blocked, false, NULL },
	{ "__spawni_child", DENY_TRAP, blocked, false, NULL },
	{ "setjmp", DENY_TRAP, blocked, false, NULL },
	{ "_setjmp", DENY_TRAP, blocked, false, NULL },
	{ "__sigsetjmp", DENY_TRAP, blocked, false, NULL },
	{ "sigsetjmp", DENY_TRAP, blocked, false, NULL },
	{ "getenv", DENY_TRAP, spawned, false, NULL },
	{ "__libc_alloca_cutoff", DENY_TRAP, spawned, false, NULL },
	{ "fcntl", DENY_TRAP, spawned, false, NULL },   /* to keep a descriptor open */
	{ "getpgid", DENY_TRAP, spawned, false, NULL }, /* to set a terminal's group, with ioctl */
	{ "ioctl", DENY_TRAP, spawned, false, NULL },
	{ "getrlimit", DENY_TRAP, spawned, false, NULL }, /* before it closes something */
	{ "pthread_create", DENY_TRAP_BODY, partly, false, NULL },
	{ "posix_spawn", DENY_TRAP_BODY, partly, false, NULL },
	{ "posix_spawnp", DENY_TRAP_BODY, partly, false, NULL },
	{ "__spawni", DENY_TRAP_BODY, partly, false, NULL },
	{ "__spawnix", DENY_TRAP_BODY, partly, false, NULL },
	{ "fork", DENY_TRAP_BODY, partly, false, NULL },
	{ "_Fork", DENY_TRAP_BODY, partly, false, NULL },
	{ "raise", DENY_TRAP_BODY, partly, false, NULL },
	{ "gsignal", DENY_TRAP_BODY, partly, false, NULL },
	{ "pthread_kill", DENY_TRAP_BODY, partly, false, NULL },
	{ "__pthread_kill_implementation", DENY_TRAP_BODY, partly, false, NULL },
	{ "abort", DENY_TRAP_BODY, partly, false, NULL },
	{ "pthread_exit", DENY_TRAP_BODY, partly, false, NULL },
	{ "getcontext", DENY_RETURN, twice, false, NULL },
	{ "setcontext", DENY_RETURN, twice, false, NULL },
	{ "swapcontext", DENY_RETURN, twice, false, NULL },
	{ "makecontext", DENY_RETURN, twice, false, NULL },
	{ "vfork", DENY_RETURN, twice, false, NULL },
	{ "__vfork", DENY_RETURN, twice, false, NULL },
	{ "longjmp", DENY_RETURN, twice, false, NULL },
	{ "_longjmp", DENY_RETURN, twice, false, NULL },
	{ "siglongjmp", DENY_RETURN, twice, false, NULL },
	{ "__longjmp_chk", DENY_RETURN, twice, false, NULL },
	{ "dlsym", DENY_RETURN, reads, false, NULL },
	{ "dlvsym", DENY_RETURN, reads, false, NULL },
	{ "dlopen", DENY_RETURN, reads, false, NULL },
	{ "dlmopen", DENY_RETURN, reads, false, NULL },
	{ "dl_iterate_phdr", DENY_RETURN, reads, false, NULL }, /* whose namespace to show */
	/* It begins to unwind from where it was called: a destructor's end. */
	{ "_Unwind_Resume", DENY_RETURN_ANYWHERE, reads, false, NULL },
	/* The contexts of libunwinds: nongnu's, LLVM's. */
	{ "_Ux86_64_getcontext", DENY_RETURN_ANYWHERE, reads, false, NULL },
	{ "_Ux86_64_setcontext", DENY_RETURN_ANYWHERE, twice, false, NULL },
	{ "unw_getcontext", DENY_RETURN_ANYWHERE, reads, false, NULL },
	{ "__unw_getcontext", DENY_RETURN_ANYWHERE, reads, false, NULL },
	{ "mcount", DENY_RETURN, reads, false, NULL },
	{ "__fentry__", DENY_RETURN, reads, false, NULL },
	{ "_mcount", DENY_RETURN, reads, false, NULL },
	/* Of SIGABRT's disposition. */
	{ "sigaction", DENY_TRAP_BODY, partly, true, NULL },
	{ "__sigaction", DENY_TRAP_BODY, partly, true, NULL },
	MUSL("strchr", spawned),
	MUSL("strncmp", spawned),
	MUSL("strnlen", spawned),
	MUSL("memchr", spawned),
	MUSL("memcpy", spawned),
	MUSL("strchrnul", spawned),
	MUSL("__strchrnul", spawned),
	MUSL("__errno_location", spawned),
	MUSL("__syscall_ret", spawned),
	MUSL("__get_handler_set", spawned),
	MUSL("sigismember", spawned),
	MUSL("read", blocked),
	MUSL("close", blocked),
	MUSL("pipe2", blocked),
	MUSL("_Fork", blocked),
	MUSL("__aio_atfork", blocked),
	MUSL("__aio_close", blocked),
	MUSL("__block_all_sigs", blocked),
	MUSL("__block_app_sigs", blocked),
	MUSL("__restore_sigs", blocked),
	MUSL("__membarrier_init", blocked),
	MUSL("__syscall_cp", blocked),
	MUSL("__syscall_cp_c", blocked),
	MUSL("__lock", blocked),
	MUSL("__unlock", blocked),
	MUSL("__tl_lock", blocked),
	MUSL("__tl_unlock", blocked),
	MUSL("__tl_sync", blocked),
	MUSL("__vm_lock", blocked),
	MUSL("__vm_unlock", blocked),
	MUSL("__vm_wait", blocked),
	MUSL("__synccall", blocked),
	/* What the signal handler calls with which setuid() and its kin reach all threads. */
	MUSL("memset", blocked),
	MUSL("sem_init", blocked),
	MUSL("sem_destroy", blocked),
	MUSL("sem_post", blocked),
	MUSL("sem_wait", blocked),
	MUSL("sem_trywait", blocked),
	MUSL("sem_timedwait", blocked),
	MUSL("pthread_setcancelstate", blocked),
	MUSL("pthread_testcancel", blocked),
	MUSL("__pthread_setcancelstate", blocked),
	MUSL("__pthread_testcancel", blocked),
	MUSL("__testcancel", blocked),
	/* And what they come to only where they have to wait. */
	MUSL("__wait", blocked),
	MUSL("__timedwait", blocked),
	MUSL("__timedwait_cp", blocked),
	MUSL("_pthread_cleanup_push", blocked),
	MUSL("_pthread_cleanup_pop", blocked),
	MUSL("__do_cleanup_push", blocked),
	MUSL("__do_cleanup_pop", blocked),
	MUSL("__do_orphaned_stdio_locks", blocked),
	MUSL("__dl_thread_cleanup", blocked),
	MUSL("__unmapself", blocked),
	{ "__unmapself", DENY_BODY, stackless, true, NULL },
	{ "child", DENY_TRAP, blocked, true, "posix_spawn" },
	{ "start", DENY_TRAP, blocked, true, "pthread_create" },
	{ "cancel_handler", DENY_TRAP, blocked, true, "pthread_cancel" },
	{ "start_c11", DENY_TRAP, blocked, true, "pthread_create" },
	{ "handler", DENY_TRAP, blocked, true, "__synccall" },
	{ "cleanup", DENY_TRAP, blocked, true, "sem_timedwait" },
	{ "do_setxid", DENY_TRAP, blocked, true, "__setxid" },
	{ "do_setgroups", DENY_TRAP, blocked, true, "setgroups" },
	{ "do_setrlimit", DENY_TRAP, blocked, true, "setrlimit" },
	{ "bcast_barrier", DENY_TRAP, blocked, true, "__membarrier" },
	{ .name = NULL },
};

const struct deny_entry *deny_list(void)
{
	return list;
}

/* The module that has the C library: libc itself, or a static program. */
bool deny_is_libc(struct sym_proc *p, struct sym_module *m)
{
	const char *name = sym_module_name(m);
	struct sym_symbol s;

	if (!strncmp(name, "libc.so", 7) || !strncmp(name, "ld-linux", 8) ||
	    !strncmp(name, "libc-2", 6) || !strncmp(name, "ld-musl", 7) ||
	    !strncmp(name, "libpthread", 10))
		return true;
	return sym_module_is_exe(m) && sym_lookup(p, m, "__libc_start_main", &s, 1) &&
	       s.module == m;
}

/* Under either of its names; and glibc's has a number. */
bool deny_is_musl(struct sym_proc *p, struct sym_module *m)
{
	struct sym_symbol s;

	return !strncmp(sym_module_name(m), "ld-musl", 7) ||
	       !strcmp(sym_module_name(m), "libc.so") || sym_lookup(p, m, "__syscall_ret", &s, 1);
}

static bool is_beside(const struct sym_symbol *s, const struct sym_symbol *other)
{
	uint64_t d = s->addr > other->addr ? s->addr - other->addr : other->addr - s->addr;

	return !s->global && d < 4096;
}

size_t deny_symbols(struct sym_proc *p, struct sym_module *m, const struct deny_entry *e,
                    struct sym_symbol *out, size_t max)
{
	struct sym_symbol other;
	size_t n, i, kept = 0;

	if (e->musl && !deny_is_musl(p, m))
		return 0;
	n = sym_lookup(p, m, e->name, out, max);
	n = n < max ? n : max;
	if (!e->beside)
		return n;
	if (!sym_lookup(p, m, e->beside, &other, 1))
		return 0;
	for (i = 0; i < n; i++)
		if (is_beside(&out[i], &other))
			out[kept++] = out[i];
	return kept;
}

static bool applies(const struct deny_entry *e, const struct sym_symbol *s, uint64_t addr, bool ret)
{
	if (addr - s->addr >= s->size)
		return false;
	if (deny_is_of_returns(e))
		return ret;
	return addr != s->addr || !deny_but_entry(e);
}

bool deny_is_anywhere(const struct deny_entry *e)
{
	return e->kind == DENY_RETURN_ANYWHERE;
}

bool deny_is_of_returns(const struct deny_entry *e)
{
	return e->kind == DENY_RETURN || deny_is_anywhere(e);
}

bool deny_but_entry(const struct deny_entry *e)
{
	return e->kind == DENY_TRAP_BODY || e->kind == DENY_BODY;
}

bool deny_is_of_traps(const struct deny_entry *e)
{
	return e->kind == DENY_TRAP || e->kind == DENY_TRAP_BODY;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/*
 * Runtimes that walk their own stacks, by the return addresses that they find
 * there: Go moves stacks and checks each; a garbage collector of HotSpot or V8
 * takes the caller of the C++ function that generated code has called last from
 * the word below that code's frame.  Any function of theirs may be that one, by
 * a tail call, too.  So may one of the program around V8, or of its addons.
 */
const char *deny_module(struct sym_proc *p, struct sym_module *m)
{
	static const char v8[] = "_ZN2v87Isolate3NewERKNS0_12CreateParamsE";
	struct sym_symbol s;

	if (sym_module_is_go(m) || sym_lookup(p, m, "runtime.morestack", &s, 1))
		return "Go checks and moves return addresses: return probes there need exit sites";
	if (sym_lookup(p, m, "JNI_CreateJavaVM", &s, 1))
		return "the JVM walks its stacks by return addresses: return probes there need "
		       "exit sites; its functions can be probed at their entry";
	if (sym_lookup(p, m, "caml_frametable", &s, 1) ||
	    sym_lookup(p, m, "caml_system__code_begin", &s, 1))
		return "OCaml's collector walks its stacks by return addresses: return probes "
		       "there need exit sites; functions can be probed at their entry";
	if (sym_lookup(p, sym_module_is_exe(m) ? NULL : m, v8, &s, 1) ||
	    ends_with(sym_module_name(m), ".node"))
		return "V8 walks its stacks by return addresses: return probes there need exit "
		       "sites; functions can be probed at their entry";
	return NULL;
}

const char *deny_nameless(struct sym_proc *p, struct sym_module *m, bool *trap)
{
	/* Of its functions one gives its own stack back, and only its name tells which. */
	*trap = !deny_is_musl(p, m);
	return *trap ? nameless : nameless_musl;
}

/* By name; the reasons against any probe come before those against a breakpoint. */
static const char *check_list(struct sym_proc *p, struct sym_module *m, uint64_t addr, bool ret,
                              bool *trap)
{
	const bool libc = deny_is_libc(p, m);
	const struct deny_entry *e;
	const char *why = NULL;
	struct sym_symbol s[4];
	size_t n, i;

	for (e = list; e->name; e++) {
		n = libc || deny_is_anywhere(e) ? deny_symbols(p, m, e, s, 4) : 0;
		for (i = 0; i < n; i++) {
			if (!applies(e, &s[i], addr, ret))
				continue;
			*trap = deny_is_of_traps(e);
			if (!*trap)
				return e->why;
			why = why ? why : e->why;
		}
	}
	*trap = why;
	return why;
}

static const char *check(struct sym_proc *p, uint64_t addr, bool ret, bool *trap)
{
	struct sym_module *m = sym_module_of(p, addr);
	const char *why;
	uint64_t from;

	*trap = false;
	if (!m)
		return NULL;
	/* Against returns alone: by exit sites they may be caught. */
	if (ret && deny_module(p, m))
		return deny_module(p, m);
	why = inplace_check(p, m, addr);
	if (!why)
		why = deny_go(p, m, addr);
	if (!why && ret && addr == sym_module_start(m))
		why = deny_start;
	if (why)
		return why;
	why = deny_uv(p, m, addr);
	*trap = why;
	if (why)
		return why;
	/* Debug symbols, where they are installed, change nothing. */
	from = sym_module_is_exe(m) ? deny_static(p, m) : deny_is_libc(p, m);
	if (from && deny_is_nameless(p, m, from, addr))
		return deny_nameless(p, m, trap);
	return check_list(p, m, addr, ret, trap);
}

const char *deny_split(const char *why, bool trap, bool ret, const char **jump_only)
{
	if (!jump_only)
		return why;
	*jump_only = trap && !ret ? why : NULL;
	if (!why || !trap)
		return why;
	return ret ? no_return : NULL;
}

const char *deny_check(struct sym_proc *p, uint64_t addr, bool ret, const char **jump_only)
{
	bool trap;
	const char *why = check(p, addr, ret, &trap);

	return deny_split(why, trap, ret, jump_only);
}
