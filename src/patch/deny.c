/* SPDX-License-Identifier: MIT */
/*
 * What libc does with all signals blocked kills the process at an int3: the
 * child of posix_spawn on its way to execve, fork, thread creation, raise.
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
static const char twice[] = "it returns twice or changes stacks: its return address must stay";
const char deny_nameless[] = "it is no function that others may call: it may be one of those "
			     "that libc runs with all signals blocked, where a "
			     "breakpoint kills";
static const char reads[] = "it looks at its own return address";

static const struct deny_entry list[] = {
	{ "execve", DENY_ALL, blocked },
	{ "execveat", DENY_ALL, blocked },
	{ "fexecve", DENY_ALL, blocked },
	{ "execv", DENY_ALL, blocked },
	{ "execvp", DENY_ALL, blocked },
	{ "execvpe", DENY_ALL, blocked },
	{ "__execvpex", DENY_ALL, blocked },
	{ "sigprocmask", DENY_ALL, blocked },
	{ "pthread_sigmask", DENY_ALL, blocked },
	{ "dup2", DENY_ALL, blocked },
	{ "chdir", DENY_ALL, blocked },
	{ "fchdir", DENY_ALL, blocked },
	{ "setsid", DENY_ALL, blocked },
	{ "setpgid", DENY_ALL, blocked },
	{ "tcsetpgrp", DENY_ALL, blocked },
	{ "sched_setparam", DENY_ALL, blocked },
	{ "sched_setscheduler", DENY_ALL, blocked },
	{ "closefrom", DENY_ALL, blocked },
	{ "close_range", DENY_ALL, blocked },
	{ "_exit", DENY_ALL, blocked },
	{ "_Exit", DENY_ALL, blocked },
	{ "clone", DENY_ALL, blocked },
	{ "__clone", DENY_ALL, blocked },
	{ "__clone3", DENY_ALL, blocked },
	{ "__clone_internal", DENY_ALL, blocked },
	{ "getuid", DENY_ALL, blocked },
	{ "getgid", DENY_ALL, blocked },
	{ "getpid", DENY_ALL, blocked },
	{ "getpagesize", DENY_ALL, blocked },
	{ "wait4", DENY_ALL, blocked },
	{ "waitpid", DENY_ALL, blocked },
	{ "sigtimedwait", DENY_ALL, blocked },
	{ "sigwaitinfo", DENY_ALL, blocked },
	{ "sigwait", DENY_ALL, blocked },
	{ "madvise", DENY_ALL, blocked },
	{ "munmap", DENY_ALL, blocked },
	{ "__close_nocancel", DENY_ALL, blocked },
	{ "__open_nocancel", DENY_ALL, blocked },
	{ "__open64_nocancel", DENY_ALL, blocked },
	{ "__libc_sigaction", DENY_ALL, blocked },
	{ "__ctype_init", DENY_ALL, blocked },
	{ "__call_tls_dtors", DENY_ALL, blocked },
	{ "__lll_lock_wait_private", DENY_ALL, blocked },
	{ "__lll_lock_wake_private", DENY_ALL, blocked },
	{ "_dl_allocate_tls_init", DENY_ALL, blocked },
	{ "start_thread", DENY_ALL, blocked },
	{ "__spawni_child", DENY_ALL, blocked },
	{ "setjmp", DENY_ALL, blocked },
	{ "_setjmp", DENY_ALL, blocked },
	{ "__sigsetjmp", DENY_ALL, blocked },
	{ "sigsetjmp", DENY_ALL, blocked },
	{ "pthread_create", DENY_BODY, partly },
	{ "posix_spawn", DENY_BODY, partly },
	{ "posix_spawnp", DENY_BODY, partly },
	{ "__spawni", DENY_BODY, partly },
	{ "__spawnix", DENY_BODY, partly },
	{ "fork", DENY_BODY, partly },
	{ "_Fork", DENY_BODY, partly },
	{ "raise", DENY_BODY, partly },
	{ "gsignal", DENY_BODY, partly },
	{ "pthread_kill", DENY_BODY, partly },
	{ "__pthread_kill_implementation", DENY_BODY, partly },
	{ "abort", DENY_BODY, partly },
	{ "pthread_exit", DENY_BODY, partly },
	{ "getcontext", DENY_RETURN, twice },
	{ "setcontext", DENY_RETURN, twice },
	{ "swapcontext", DENY_RETURN, twice },
	{ "makecontext", DENY_RETURN, twice },
	{ "vfork", DENY_RETURN, twice },
	{ "__vfork", DENY_RETURN, twice },
	{ "longjmp", DENY_RETURN, twice },
	{ "_longjmp", DENY_RETURN, twice },
	{ "siglongjmp", DENY_RETURN, twice },
	{ "__longjmp_chk", DENY_RETURN, twice },
	{ "dlsym", DENY_RETURN, reads },
	{ "dlvsym", DENY_RETURN, reads },
	{ "dlopen", DENY_RETURN, reads },
	{ "dlmopen", DENY_RETURN, reads },
	{ "mcount", DENY_RETURN, reads },
	{ "__fentry__", DENY_RETURN, reads },
	{ "_mcount", DENY_RETURN, reads },
	{ NULL, DENY_ALL, NULL },
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

static bool applies(const struct deny_entry *e, const struct sym_symbol *s, uint64_t addr, bool ret)
{
	if (addr - s->addr >= s->size)
		return false;
	switch (e->kind) {
	case DENY_ALL:
		return true;
	case DENY_BODY:
		return addr != s->addr;
	default:
		return ret;
	}
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

	if (sym_lookup(p, m, "runtime.morestack", &s, 1))
		return "Go checks and moves return addresses: return probes there need exit sites, "
		       "which come later";
	if (sym_lookup(p, m, "JNI_CreateJavaVM", &s, 1))
		return "the JVM walks its stacks by return addresses: return probes there need "
		       "exit sites, which come later; its functions can be probed at their entry";
	if (sym_lookup(p, sym_module_is_exe(m) ? NULL : m, v8, &s, 1) ||
	    ends_with(sym_module_name(m), ".node"))
		return "V8 walks its stacks by return addresses: return probes there need exit "
		       "sites, which come later; functions can be probed at their entry";
	return NULL;
}

const char *deny_check(struct sym_proc *p, uint64_t addr, bool ret)
{
	struct sym_module *m = sym_module_of(p, addr);
	const struct deny_entry *e;
	struct sym_symbol s[4];
	const char *why;
	uint64_t off;
	size_t n, i;

	if (!m)
		return NULL;
	if (ret && deny_module(p, m))
		return deny_module(p, m);
	why = inplace_check(p, m, addr);
	if (why || !deny_is_libc(p, m))
		return why;
	/* Debug symbols, where they are installed, change nothing. */
	if (!sym_module_is_exe(m) && (!sym_resolve(p, addr, &s[0], &off) || !s[0].global))
		return deny_nameless;
	for (e = list; e->name; e++) {
		n = sym_lookup(p, m, e->name, s, 4);
		for (i = 0; i < n && i < 4; i++)
			if (applies(e, &s[i], addr, ret))
				return e->why;
	}
	return NULL;
}
