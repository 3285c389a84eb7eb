/* SPDX-License-Identifier: MIT */
/*
 * A user of libc that calls much of it, with threads, signals, jumps, contexts
 * and children; says what came out, nothing of which depends on time or chance.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <argz.h>
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <envz.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <inttypes.h>
#include <langinfo.h>
#include <libgen.h>
#include <locale.h>
#include <malloc.h>
#include <mntent.h>
#include <monetary.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <obstack.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>
#include <wctype.h>
#include <wordexp.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static uint64_t sum = 0xcbf29ce484222325;

static void add(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const unsigned char *)p)[i]) * 0x100000001b3;
}

static void num(long v)
{
	add(&v, sizeof(v));
}

static void str(const char *s)
{
	add(s ? s : "(null)", s ? strlen(s) : 6);
}

static void say(const char *what)
{
	printf("%s %016" PRIx64 "\n", what, sum);
	fflush(stdout);
}

static int sign(long v)
{
	return (v > 0) - (v < 0);
}

static void strings(void)
{
	static char a[9000], b[9000];

	for (size_t n = 0; n < 300; n += n < 40 ? 1 : 37) {
		for (size_t off = 0; off < 3; off++) {
			char *s = a + off, *d = b + 64 - off;

			memset(s, 'a' + n % 20, n);
			s[n] = 0;
			memcpy(d, s, n + 1);
			memmove(d + 1, d, n);
			num(strlen(d) + strnlen(d, n / 2));
			num(sign(memcmp(s, d, n)) + sign(strcmp(s, d)) + sign(strncmp(s, d, n)));
			num(strchr(s, 'b') ? strchr(s, 'b') - s : -1);
			num(strrchr(s, 'a') ? strrchr(s, 'a') - s : -1);
			num(memchr(s, 'c', n) ? 1 : 2);
			num(memrchr(s, 'd', n) ? 1 : 2);
			num((char *)rawmemchr(s, 0) - s + (strchrnul(s, 'e') - s));
			num(sign(strcasecmp(s, d)) + sign(strncasecmp(s, d, n)));
			strcpy(d, s);
			strncpy(d, s, n + 3);
			num(stpcpy(d, s) - d + (stpncpy(d, s, n) - d));
			strcat(d, "xy");
			strncat(d, "xyz", 2);
			mempcpy(d, s, n);
			memccpy(d, s, 'q', n);
			num(strspn(s, "abc") + strcspn(s, "xyz"));
			str(d);
			memfrob(d, n);
			add(d, n);
			swab(s, d, n & ~1);
			explicit_bzero(d, n);
			num(bcmp(s, d, n) != 0);
		}
	}
	strcpy(a, "The quick, brown;fox jumps over,,the lazy dog");
	char *save, *p = a, *t;
	for (t = strtok_r(a, " ,;", &save); t; t = strtok_r(NULL, " ,;", &save))
		str(t);
	strcpy(b, "one:two::three");
	for (p = b; (t = strsep(&p, ":"));)
		str(t);
	strcpy(b, "tokens of strtok");
	for (t = strtok(b, " "); t; t = strtok(NULL, " "))
		str(t);
	str(strstr("haystack with a needle in the haystack", "needle"));
	str(strcasestr("haystack with a NEEDLE", "needle"));
	str(memmem("binary\0haystack", 15, "hay", 3));
	str(strpbrk("hello world", "wol"));
	num(strverscmp("file9.txt", "file10.txt") < 0);
	num(strcoll("a", "b") < 0);
	num(strxfrm(b, "transform me", sizeof(b)));
	str(basename("/usr/lib/libc.so"));
	strcpy(b, "/usr/lib/");
	str(dirname(b));
	t = strdup("dup");
	p = strndup("duplicate", 3);
	num(!strcmp(t, p));
	free(t);
	free(p);
	for (int e = -1; e < 140; e++) {
		str(strerror_r(e, b, sizeof(b)));
		str(strerrorname_np(e));
		str(strerrordesc_np(e));
	}
	for (int s = 0; s < 66; s++) {
		str(strsignal(s));
		str(sigabbrev_np(s));
	}
	str(l64a(123456));
	num(a64l("Abc/"));
	num(ffs(0x70) + ffsl(1l << 40) + ffsll(0));
	char *argz = NULL;
	size_t len = 0;
	argz_create_sep("a=1:b=2:c=3:a=4", ':', &argz, &len);
	argz_add(&argz, &len, "d");
	argz_insert(&argz, &len, argz, "first=0");
	envz_add(&argz, &len, "b", "changed");
	unsigned int nr = 0;
	argz_replace(&argz, &len, "c", "sea", &nr);
	argz_delete(&argz, &len, argz_next(argz, len, argz));
	envz_strip(&argz, &len);
	argz_stringify(argz, len, ' ');
	str(argz);
	free(argz);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int compare_r(const void *a, const void *b, void *arg)
{
	++*(int *)arg;
	return *(const int *)b - *(const int *)a;
}

static void nothing(void *p)
{
}

static void walk(const void *node, VISIT v, int depth)
{
	if (v == postorder || v == leaf)
		num(**(int *const *)node * 10 + depth % 2);
}

static void tables(void)
{
	static int v[700], *found;
	struct random_data rd = { 0 };
	struct drand48_data dd;
	static char state[64];
	char word[16];
	int32_t r;
	int calls = 0;
	long l;
	double d;
	void *root = NULL;
	struct obstack o;

	srandom(3);
	initstate_r(5, state, sizeof(state), &rd);
	srand48_r(9, &dd);
	for (int i = 0; i < 700; i++) {
		random_r(&rd, &r);
		lrand48_r(&dd, &l);
		v[i] = (int)((r ^ random() ^ l ^ rand()) % 10000);
	}
	drand48_r(&dd, &d);
	num((long)(d * 1e6) + (long)(drand48() * 1e6) + mrand48() +
	    nrand48((unsigned short[]){ 1, 2, 3 }));
	for (int i = 0; i < 300; i++)
		tsearch(&v[i], &root, compare);
	for (int i = 0; i < 100; i++)
		tdelete(&v[i * 2], &root, compare);
	num(tfind(&v[1], &root, compare) != NULL);
	twalk(root, walk);
	tdestroy(root, nothing);
	qsort(v, 700, sizeof(*v), compare);
	found = bsearch(&v[350], v, 700, sizeof(*v), compare);
	num(found != NULL);
	qsort_r(v, 700, sizeof(*v), compare_r, &calls);
	num(calls);
	add(v, sizeof(v));
	size_t n = 50;
	num(lfind(&v[3], v, &n, sizeof(*v), compare) != NULL);
	hcreate(100);
	for (int i = 0; i < 60; i++) {
		snprintf(word, sizeof(word), "key%d", i);
		hsearch((ENTRY){ strdup(word), (void *)(intptr_t)i }, ENTER);
	}
	num((intptr_t)hsearch((ENTRY){ "key33", NULL }, FIND)->data);
	hdestroy();
	struct qelem a = { 0 }, b = { 0 };
	insque(&a, NULL);
	insque(&b, &a);
	remque(&a);
	obstack_init(&o);
	for (int i = 0; i < 200; i++) {
		obstack_printf(&o, "%d,", i);
		if (i % 40 == 39)
			str((obstack_1grow(&o, 0), obstack_finish(&o)));
	}
	num(obstack_memory_used(&o) > 0);
	obstack_free(&o, NULL);
	num(abs(-3) + labs(-4) + llabs(-5) + div(17, 5).rem + ldiv(17, 5).quot + lldiv(-7, 2).rem);
}

static void numbers(void)
{
	static const char *const forms[] = { "%d|%5d|%-5d|%05d|%+d", "%x %#X %o %#o %u",
		                             "%hhd %hd %ld %lld %zd", NULL };
	static const double values[] = { 0,      -0.0,    1,   3.14159,  1e22,    1e-22,
		                         5e-324, 1.7e308, 0.1, 123456.5, 1.0 / 0, -1.0 / 0 };
	char buf[500];
	wchar_t wide[200] = { 0 };
	int a = 0, b = 0, c = 0;
	float f = 0;
	double d;
	long double ld;
	char s1[20] = "", s2[20] = "", *end = NULL, *m = NULL;

	for (int i = 0; forms[i]; i++) {
		snprintf(buf, sizeof(buf), forms[i], 12, -34, 56, 78, -9);
		str(buf);
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		snprintf(buf, sizeof(buf), "%f %.3e %g %a %10.2f %-10.1f| %+.0f %#g %G %E %A",
		         values[i], values[i], values[i], values[i], values[i], values[i],
		         values[i], values[i], values[i], values[i], values[i]);
		str(buf);
		snprintf(buf, sizeof(buf), "%Lf %.20Le %La %'.2f", (long double)values[i],
		         (long double)values[i], (long double)values[i], values[i]);
		str(buf);
		swprintf(wide, 200, L"%g %Lf %ls %s %5lc", values[i], (long double)values[i],
		         L"wide", "narrow", L'x');
		add(wide, wcslen(wide) * sizeof(*wide));
		str(gcvt(values[i], 8, buf));
		str(ecvt(values[i] > 1e300 ? 0 : values[i], 6, &a, &b));
		str(fcvt(values[i] > 1e20 ? 1 : values[i], 6, &a, &b));
		strfromd(buf, 90, "%.7g", values[i]);
		str(buf);
		strfmon(buf, 90, "%n %i %=*#8.3n", 5.5, -3.25, 12345.678);
		str(buf);
	}
	snprintf(buf, sizeof(buf), "%2$s %1$*3$d", 5, "pos", 7);
	str(buf);
	snprintf(buf, sizeof(buf), "%% %m %.3s %p %c", "truncated", (void *)16, 'q');
	str(buf);
	num(asprintf(&m, "%*.*f|%.*s", 12, 4, 2.5, 3, "abcdef"));
	str(m);
	free(m);
	num(sscanf("12 0x1f 077 3.5 word [bracket] 1e3 99", "%d %i %o %f %19s [%19[^]]] %lf %n", &a,
	           &b, &c, &f, s1, s2, &d, &a));
	num(a + b + c + (long)(f + d));
	str(s1);
	str(s2);
	num(swscanf(L"77 8.5 text", L"%d %Lf %19s", &a, &ld, s1));
	num(sscanf("a:b", "%m[a-z]:%ms", &m, &end));
	free(m);
	free(end);
	for (const char *const *s =
	             (const char *const[]){ "0", "12abc", "-0x1F", "0777", "99999999999999999999",
	                                    "  +5", "1e400", "0x1.8p3", "nan(5)", "-inf", ".5e-3",
	                                    "1.17549435e-38", "z9", NULL };
	     *s; s++) {
		errno = 0;
		num(strtol(*s, &end, 0) + strtoul(*s, NULL, 10) + strtoll(*s, NULL, 36) +
		    strtoull(*s, NULL, 16) + strtoimax(*s, NULL, 8) + (end - *s) + errno);
		d = strtod(*s, &end);
		f = strtof(*s, NULL);
		ld = strtold(*s, NULL);
		snprintf(buf, sizeof(buf), "%a %a %La %ld", d, (double)f, ld, (long)(end - *s));
		str(buf);
		mbstowcs(wide, *s, 100);
		num(wcstol(wide, NULL, 0) + (long)wcstoul(wide, NULL, 16) +
		    (long)(wcstod(wide, NULL) > 0));
		num(atoi(*s) + atol(*s) + atoll(*s) + (atof(*s) > 1));
	}
}

static void wide(void)
{
	wchar_t w[100], v[100], *save;
	char buf[200];
	mbstate_t st = { 0 };

	setlocale(LC_ALL, "C.UTF-8");
	const char *p = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80";
	num(mbstowcs(w, p, 100));
	num(mbsrtowcs(v, &p, 100, &st));
	add(w, wcslen(w) * 4);
	num(wcscmp(w, v) + sign(wcsncmp(w, L"gr\u00fc", 2)) + sign(wcscasecmp(w, L"GR")) +
	    sign(wmemcmp(w, v, 3)));
	wcscpy(v, w);
	wcscat(v, L" more words here");
	wcsncat(v, L"xyz", 2);
	num(wcschr(v, L'w') - v + (wcsrchr(v, L'e') - v) + (wcsstr(v, L"words") - v) +
	    (wmemchr(v, L'm', 40) - v));
	num(wcsspn(v, L"gr") + wcscspn(v, L"mw") + (wcspbrk(v, L"dh") - v) + wcsnlen(v, 5) +
	    wcswidth(v, 9));
	for (wchar_t *t = wcstok(v, L" ", &save); t; t = wcstok(NULL, L" ", &save))
		add(t, wcslen(t) * 4);
	num(wcstombs(buf, w, sizeof(buf)));
	str(buf);
	wmemset(v, L'q', 5);
	wmemcpy(v + 5, w, 3);
	wmemmove(v + 1, v, 7);
	add(v, 32);
	num(wcsxfrm(v, w, 100) + sign(wcscoll(w, L"h")));
	for (wchar_t c = 0; c < 0x250; c += 3)
		num(iswalpha(c) * 0 + !!iswalnum(c) + 2 * !!iswupper(c) + 4 * !!iswspace(c) +
		    8 * !!iswpunct(c) + 16 * !!iswprint(c) + towupper(c) + towlower(c) +
		    wcwidth(c) + !!iswctype(c, wctype("digit")) + towctrans(c, wctrans("toupper")) +
		    btowc(c & 255) + wctob(c));
	for (int c = 0; c < 256; c++)
		num(!!isalpha(c) + 2 * !!isdigit(c) + 4 * !!isspace(c) + 8 * !!ispunct(c) +
		    16 * !!isxdigit(c) + 32 * !!iscntrl(c) + toupper(c) + tolower(c) +
		    !!isgraph(c) + !!isblank(c) + toascii(c));
	for (const char *const *s =
	             (const char *const[]){ "UTF-16LE", "UTF-32", "ISO-8859-1", "ASCII//TRANSLIT",
	                                    "UCS-2", "UTF-7", NULL };
	     *s; s++) {
		char in[] = "caf\xc3\xa9 \xe2\x82\xac", *ip = in, *op = buf;
		size_t il = sizeof(in), ol = sizeof(buf);
		iconv_t cd = iconv_open(*s, "UTF-8");

		if (cd == (iconv_t)-1) {
			num(errno);
			continue;
		}
		num(iconv(cd, &ip, &il, &op, &ol) == (size_t)-1 ? errno : 0);
		add(buf, sizeof(buf) - ol);
		iconv_close(cd);
	}
	str(nl_langinfo(CODESET));
	str(localeconv()->decimal_point);
	locale_t l = newlocale(LC_ALL_MASK, "C", NULL), old = uselocale(l);
	num(strcoll_l("a", "B", l) > 0);
	num(toupper_l('q', l) + isalpha_l('x', l));
	uselocale(old);
	freelocale(duplocale(l));
	freelocale(l);
	setlocale(LC_ALL, "C");
}

static int on_file(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	num(flag * 100 + f->level * 10 + strlen(path));
	return 0;
}

static void files(void)
{
	char buf[600], name[] = "tempXXXXXX", *line = NULL;
	size_t room = 0;
	struct stat st;
	struct iovec iov[2] = { { "vec", 3 }, { "tor\n", 4 } };
	struct dirent **list;
	glob_t g;
	wordexp_t we = { 0 };
	FILE *f, *m;
	fpos_t pos;
	int fd = mkstemp(name), fd2;

	num(writev(fd, iov, 2) + pwrite(fd, "PW", 2, 3) + lseek(fd, 0, SEEK_CUR));
	num(fstat(fd, &st) + st.st_size + ftruncate(fd, 5000) + fsync(fd) + fdatasync(fd));
	num(posix_fallocate(fd, 0, 6000) + posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	fd2 = dup(fd);
	num(fcntl(fd2, F_GETFL) & O_ACCMODE);
	num(preadv(fd2, iov, 0, 0) + flock(fd, 2) + lockf(fd, F_TEST, 0));
	close(fd2);
	f = fdopen(fd, "r+");
	for (int i = 0; i < 100; i++)
		fprintf(f, "line %d\tof %s\n", i, "text");
	rewind(f);
	fgetpos(f, &pos);
	while (getline(&line, &room, f) > 0)
		str(line);
	free(line);
	fsetpos(f, &pos);
	num(fgetc(f) + getc(f) + ungetc('u', f) + fread(buf, 1, 30, f) + fwrite("w", 1, 1, f) +
	    ftell(f));
	num(fseek(f, 20, SEEK_SET) + fseeko(f, -3, SEEK_END) + ftello(f) + feof(f) + ferror(f));
	str(fgets(buf, 9, f));
	clearerr(f);
	num(setvbuf(f, NULL, _IOLBF, 100) + fputs("puts", f) + fputc('c', f) + putw(7, f) +
	    fflush(f) + fileno(f) * 0);
	num(__fbufsize(f) > 0);
	num(__freadable(f) + __fwritable(f));
	flockfile(f);
	putc_unlocked('x', f);
	funlockfile(f);
	num(ftrylockfile(f));
	funlockfile(f);
	f = freopen(name, "r", f);
	num(fscanf(f, "line %d", &fd));
	fclose(f);
	m = open_memstream(&line, &room);
	fprintf(m, "%s %d", "memory", 5);
	fclose(m);
	str(line);
	free(line);
	m = fmemopen((char[]){ "some words" }, 10, "r");
	num(fscanf(m, "%99s", buf));
	str(buf);
	fclose(m);
	m = tmpfile();
	fputws(L"wide out\n", m);
	fwide(m, 0);
	rewind(m);
	num(fgetwc(m) + (long)ungetwc(L'z', m));
	fclose(m);
	num(mkdir("dir", 0700) + mkdir("dir/sub", 0755) + symlink("sub", "dir/link") +
	    link(name, "dir/hard") + rename("dir/hard", "dir/new"));
	num(access("dir/new", R_OK) + faccessat(AT_FDCWD, "dir", X_OK, 0) + chmod("dir/new", 0600) +
	    truncate("dir/new", 10) + stat("dir", &st) * 0 + lstat("dir/link", &st) +
	    mkfifo("dir/fifo", 0600));
	num(readlink("dir/link", buf, sizeof(buf)) + umask(022) * 0 +
	    utimes("dir/new", (struct timeval[]){ { 1, 2 }, { 3, 4 } }) +
	    utime("dir/new", &(struct utimbuf){ 5, 6 }) + futimens(0, NULL) * 0);
	num(scandir("dir", &list, NULL, alphasort));
	for (int i = 0; i < 5; i++)
		str(list[i]->d_name);
	num(versionsort((const struct dirent **)&list[1], (const struct dirent **)&list[2]) < 0);
	DIR *d = opendir("dir");
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		num(e->d_type);
	rewinddir(d);
	seekdir(d, telldir(d));
	num(dirfd(d) >= 0);
	closedir(d);
	num(nftw("dir", on_file, 8, FTW_PHYS | FTW_DEPTH) * 0);
	num(glob("dir/*", GLOB_MARK | GLOB_BRACE, NULL, &g) + g.gl_pathc);
	for (size_t i = 0; i < g.gl_pathc; i++)
		str(g.gl_pathv[i]);
	globfree(&g);
	setenv("TORTURE", "a value", 1);
	num(wordexp("~ $TORTURE \"q $TORTURE\" dir/* $((3*4)) xy", &we, WRDE_NOCMD)
	            ?: (int)we.we_wordc);
	for (size_t i = 1; i < we.we_wordc; i++)
		str(we.we_wordv[i]);
	wordfree(&we);
	str(secure_getenv("TORTURE"));
	putenv("OTHER=x");
	unsetenv("TORTURE");
	str(getenv("TORTURE"));
	num(fnmatch("*.[ch]", "file.c", 0) + fnmatch("a/*/b", "a/x/b", FNM_PATHNAME) +
	    fnmatch("@(x|y)*", "yes", FNM_EXTMATCH) + fnmatch("[[:alpha:]]?", "q1", FNM_CASEFOLD));
	str(realpath("dir/link", buf) ? "real" : NULL);
	num(getcwd(buf, sizeof(buf)) != NULL);
	free(get_current_dir_name());
	num(remove("dir/sub") + unlink("dir/link") + unlinkat(AT_FDCWD, "dir/new", 0) +
	    unlink("dir/fifo") + rmdir("dir") + unlink(name));
	struct statvfs vfs;
	num(statvfs("/", &vfs) + pathconf("/", _PC_NAME_MAX) + sysconf(_SC_PAGESIZE) +
	    confstr(_CS_PATH, buf, sizeof(buf)));
	m = setmntent("/proc/mounts", "r");
	num(m && getmntent(m) != NULL);
	endmntent(m);
	num(open("/nonexistent", O_RDONLY) + errno);
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	num(mprotect(p, 4096, PROT_READ) + msync(p, 4096, MS_SYNC) + mlock(p, 4096) * 0 +
	    munlock(p, 4096) * 0);
	p = mremap(p, 8192, 16384, MREMAP_MAYMOVE);
	num(p != MAP_FAILED);
}

static void patterns(void)
{
	static const char *const re[] = { "^([a-z]+)-([0-9]{2,4})$",
		                          "(a|b)*c|d+",
		                          "[[:upper:]][^[:space:]]*",
		                          "(foo|bar)\\1",
		                          "x{3,}y?z*",
		                          "(",
		                          "[z-a]",
		                          NULL };
	static const char *const text[] = { "abc-123", "ababc",    "hello World again",
		                            "foofoo",  "wxxxxyzz", "ddd",
		                            NULL };
	regmatch_t m[4];
	char buf[100];
	regex_t r;

	for (int i = 0; re[i]; i++) {
		int err = regcomp(&r, re[i], REG_EXTENDED | (i & 1 ? REG_ICASE : 0));

		regerror(err, &r, buf, sizeof(buf));
		str(buf);
		for (int k = 0; !err && text[k]; k++)
			if (!regexec(&r, text[k], 4, m, 0))
				add(m, sizeof(m[0]) * (r.re_nsub + 1));
		if (!err)
			regfree(&r);
	}
	char *argv[] = { "prog", "-a", "file", "--long=5", "-bvalue", "--", "rest", NULL };
	static const struct option lo[] = { { "long", required_argument, NULL, 'l' },
		                            { NULL, 0, NULL, 0 } };
	int c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(7, argv, "ab:", lo, NULL)) != -1) {
		num(c);
		str(optarg);
	}
	char *sub = (char[]){ "ro,size=5,bad" }, *value;
	while (*sub)
		num(getsubopt(&sub, (char *const[]){ "ro", "size", NULL }, &value));
}

static void times(void)
{
	char buf[200];
	struct tm tm = { 0 };
	time_t t = 1700000000;
	struct timeval tv;
	struct timespec ts;

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (int i = 0; i < 20; i++, t += 7654321) {
		localtime_r(&t, &tm);
		num(mktime(&tm) - t);
		strftime(buf, sizeof(buf),
		         "%a %A %b %B %c %C %d %D %e %F %g %G %H %I %j %k %l %m %M %n %p %P %r %R "
		         "%s %S %t %T %u %U %V %w %W %x %X %y %Y %z %Z %%",
		         &tm);
		str(buf);
		str(asctime_r(&tm, buf));
		gmtime_r(&t, &tm);
		num(timegm(&tm) - t);
		str(ctime_r(&t, buf));
	}
	str(strptime("2024-02-29 12:34:56 Thu Feb +0200", "%Y-%m-%d %T %a %b %z", &tm));
	num(tm.tm_yday + tm.tm_wday);
	str(strptime("12/31/99 11:59 PM", "%D %I:%M %p", &tm));
	wchar_t w[60];
	num(wcsftime(w, 60, L"%Y %B %j", &tm));
	num((long)difftime(t, t - 5) + (time(NULL) > 0) + gettimeofday(&tv, NULL) +
	    clock_gettime(CLOCK_MONOTONIC, &ts) + clock_getres(CLOCK_REALTIME, &ts) +
	    timespec_get(&ts, TIME_UTC));
	num(nanosleep(&(struct timespec){ 0, 1000 }, NULL) + usleep(1) +
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, 10 }, NULL) +
	    (clock() >= 0));
	setenv("TZ", "UTC", 1);
	tzset();
	struct rusage ru;
	struct rlimit rl;
	num(getrusage(RUSAGE_SELF, &ru) + getrlimit(RLIMIT_NOFILE, &rl) +
	    setrlimit(RLIMIT_NOFILE, &rl) + getpriority(PRIO_PROCESS, 0) + sched_yield());
	struct utsname un;
	num(uname(&un));
	num(gethostname(buf, sizeof(buf)));
}

static void memory(void)
{
	void *p[200] = { NULL };
	unsigned int x = 1;

	for (int i = 0; i < 3000; i++) {
		unsigned int k;

		x = x * 1103515245 + 12345;
		k = x >> 16 & 127;
		if (i % 7 == 0)
			p[k] = realloc(p[k], (x >> 8) % 5000 + 1);
		else if (p[k])
			free(p[k]), p[k] = NULL;
		else if (i % 5 == 0)
			p[k] = calloc(1 + x % 7, 1 + (x >> 20));
		else if (i % 11 == 0)
			p[k] = memalign(64, x % 3000);
		else
			p[k] = malloc(i % 97 == 0 ? 300000 : x % 2000);
	}
	for (int i = 0; i < 200; i++)
		free(p[i]);
	num(posix_memalign(&p[0], 256, 100));
	free(p[0]);
	free(aligned_alloc(64, 128));
	free(valloc(10));
	free(pvalloc(10));
	free(reallocarray(NULL, 10, 10));
	num(reallocarray(NULL, SIZE_MAX, 2) == NULL);
	p[0] = malloc(100);
	num(malloc_usable_size(p[0]) >= 100);
	free(p[0]);
	num(mallopt(M_MMAP_THRESHOLD, 200000));
	struct mallinfo2 mi = mallinfo2();
	num(mi.uordblks > 0);
	num(sbrk(0) != NULL);
}

static void network(void)
{
	char buf[200];
	struct in_addr a;
	struct in6_addr b;
	struct addrinfo *ai, hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	int sv[2], ep = epoll_create1(0), p[2], efd = eventfd(0, 0), one = 1;
	struct epoll_event ev = { .events = EPOLLIN };
	struct msghdr mh = { 0 };
	struct iovec iov = { buf, 50 };
	fd_set set;

	num(inet_pton(AF_INET, "192.168.1.2", &a) + inet_pton(AF_INET6, "fe80::1:2%x", &b) +
	    inet_pton(AF_INET6, "2001:db8::ff00:42:8329", &b));
	str(inet_ntop(AF_INET6, &b, buf, sizeof(buf)));
	str(inet_ntop(AF_INET, &a, buf, sizeof(buf)));
	str(inet_ntoa(a));
	num(inet_addr("1.2.3.4") + inet_aton("0x7f.1", &a) + inet_network("10.1") + inet_lnaof(a) +
	    htonl(5) + ntohs(7));
	num(getaddrinfo("127.0.0.1", "80", &hints, &ai));
	num(getnameinfo(ai->ai_addr, ai->ai_addrlen, buf, 100, buf + 100, 50,
	                NI_NUMERICHOST | NI_NUMERICSERV));
	str(buf);
	freeaddrinfo(ai);
	num(getaddrinfo("::bad::", NULL, &hints, &ai));
	str(gai_strerror(EAI_NONAME));
	str(hstrerror(1));
	struct protoent *pe = getprotobyname("tcp");
	num(pe ? pe->p_proto : 6);
	struct servent *se = getservbyname("ssh", "tcp");
	num(se ? ntohs(se->s_port) : 22);
	struct ether_addr *ea = ether_aton("1:2:3:4:5:6");
	str(ether_ntoa(ea));
	struct passwd *pw = getpwuid(0), pwb, *pr;
	str(pw ? pw->pw_name : NULL);
	num(getpwnam_r("root", &pwb, buf, sizeof(buf), &pr));
	struct group *gr = getgrgid(0);
	str(gr ? gr->gr_name : NULL);
	num(getgroups(0, NULL) >= 0);
	num(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) + pipe2(p, O_CLOEXEC));
	num(setsockopt(sv[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) +
	    getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &one, &(socklen_t){ sizeof(one) }) + one);
	num(epoll_ctl(ep, EPOLL_CTL_ADD, sv[1], &ev) + epoll_wait(ep, &ev, 1, 0));
	num(send(sv[0], "hello", 5, 0) + write(sv[0], " you", 4) + epoll_wait(ep, &ev, 1, 1000));
	num(poll(&(struct pollfd){ sv[1], POLLIN, 0 }, 1, 1000) + recv(sv[1], buf, 3, MSG_PEEK) +
	    recv(sv[1], buf, 9, 0));
	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	num(sendmsg(sv[1], &mh, 0) + recvmsg(sv[0], &mh, 0) + shutdown(sv[0], SHUT_WR) +
	    read(sv[1], buf, 5));
	FD_ZERO(&set);
	FD_SET(sv[0], &set);
	num(select(sv[0] + 1, NULL, &set, NULL, &(struct timeval){ 0, 0 }) +
	    pselect(0, NULL, NULL, NULL, &(struct timespec){ 0, 0 }, NULL));
	num(eventfd_write(efd, 5) + write(p[1], "x", 1) + read(p[0], buf, 1));
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), s;
	num(bind(l, (void *)&in, sizeof(in)) + listen(l, 1) + getsockname(l, (void *)&in, &len) +
	    connect(c, (void *)&in, sizeof(in)));
	s = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	num(getpeername(c, (void *)&in, &len) + (sendto(c, "tcp", 3, 0, NULL, 0)) +
	    recvfrom(s, buf, 3, MSG_WAITALL, NULL, NULL));
	for (int i = 0, *fd = (int[]){ sv[0], sv[1], ep, efd, p[0], p[1], l, c, s }; i < 9; i++)
		num(close(fd[i]));
}

static void ipc(void)
{
	int shm = shmget(IPC_PRIVATE, 4096, 0600), sem = semget(IPC_PRIVATE, 1, 0600),
	    msg = msgget(IPC_PRIVATE, 0600);
	struct {
		long type;
		char text[8];
	} m = { 1, "message" };
	char *p = shmat(shm, NULL, 0);

	if (p != (void *)-1)
		num(shmdt(p));
	num(shmctl(shm, IPC_RMID, NULL));
	num(semop(sem, &(struct sembuf){ 0, 1, 0 }, 1) + semctl(sem, 0, GETVAL) +
	    semctl(sem, 0, IPC_RMID));
	num(msgsnd(msg, &m, 8, 0) + msgrcv(msg, &m, 8, 0, 0) + msgctl(msg, IPC_RMID, NULL));
}

/* --- flow ---------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got += sig;
}

static void on_info(int sig, siginfo_t *si, void *uc)
{
	got += si->si_value.sival_int;
}

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void signals(void)
{
	struct sigaction sa = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO }, old;
	struct itimerval it = { { 0, 300 }, { 0, 300 } };
	sigset_t set, was;
	volatile int tries = 0;
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	timer_t timer;
	siginfo_t si;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	signal(SIGUSR1, on_signal);
	sigaction(SIGUSR2, &sa, &old);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	num(got);
	sigprocmask(SIG_BLOCK, &set, &was);
	sigqueue(getpid(), SIGUSR2, (union sigval){ 1000 });
	sigpending(&set);
	num(sigismember(&set, SIGUSR2));
	sigprocmask(SIG_SETMASK, &was, NULL);
	num(got);
	sigaltstack(&ss, NULL);
	sa = (struct sigaction){ .sa_handler = on_fault, .sa_flags = SA_ONSTACK };
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	/* Each leaves memcpy() between two stores: seldom enough for what compares counts. */
	for (tries = 0; tries < 8; tries++)
		if (!sigsetjmp(back, 1)) {
			if (tries % 2)
				strlen((char *)8);
			memcpy((char *)16, "to a bad address", 16 + tries);
		}
	num(tries);
	signal(SIGSEGV, SIG_DFL);
	got = 0;
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &it, NULL);
	for (tries = 0; got < 20 * SIGALRM;) {
		char buf[40];

		snprintf(buf, sizeof(buf), "%d", ++tries);
		free(strdup(buf));
	}
	it.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	num(got >= 20 * SIGALRM);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	timer_create(CLOCK_MONOTONIC,
	             &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 },
	             &timer);
	timer_settime(timer, 0, &(struct itimerspec){ { 0, 0 }, { 0, 1000 } }, NULL);
	num(sigwaitinfo(&set, &si));
	num(timer_getoverrun(timer) * 0 + timer_delete(timer));
	num(sigtimedwait(&set, &si, &(struct timespec){ 0, 1000 }));
	alarm(0);
	int fd = signalfd(-1, &set, 0);
	kill(getpid(), SIGUSR2);
	struct signalfd_siginfo fs;
	num(read(fd, &fs, sizeof(fs)) + fs.ssi_signo);
	close(fd);
	psignal(0, NULL);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	free(ss.ss_sp);
}

static ucontext_t main_uc, co_uc[2];

static void coroutine(int me)
{
	for (int i = 0; i < 30; i++) {
		num(me * 100 + i);
		swapcontext(&co_uc[me], i % 3 ? &co_uc[!me] : &main_uc);
	}
}

static void contexts(void)
{
	static char stack[2][65536];
	jmp_buf jb;
	volatile int n = 0;

	for (int i = 0; i < 2; i++) {
		getcontext(&co_uc[i]);
		co_uc[i].uc_stack.ss_sp = stack[i];
		co_uc[i].uc_stack.ss_size = sizeof(stack[i]);
		co_uc[i].uc_link = &main_uc;
		makecontext(&co_uc[i], (void (*)(void))coroutine, 1, i);
	}
	for (int i = 0; i < 12; i++)
		swapcontext(&main_uc, &co_uc[i % 2]);
	if (setjmp(jb) < 50) {
		n = n + 1;
		longjmp(jb, n);
	}
	num(n);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int turn, cleaned, onces;
static __thread int mine;

static void clean(void *arg)
{
	__atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
}

static void only_once(void)
{
	onces++;
}

static void *worker(void *arg)
{
	int me = (int)(intptr_t)arg;
	char buf[60];

	pthread_once(&once, only_once);
	pthread_setspecific(key, arg);
	mine = me;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 6 != me)
			pthread_cond_wait(&cond, &lock);
		snprintf(buf, sizeof(buf), "%d.%d.%f", me, i, i * 1.5);
		str(buf);
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&lock);
		free(malloc(100 * i + mine));
	}
	pthread_barrier_wait(&barrier);
	pthread_rwlock_rdlock(&rw);
	pthread_rwlock_unlock(&rw);
	pthread_cleanup_push(clean, NULL);
	if (me == 3)
		pthread_exit((void *)33);
	if (me >= 4)
		while (1) {
			pthread_testcancel();
			pause();
		}
	pthread_cleanup_pop(1);
	return (void *)(intptr_t)(me * 2);
}

static void threads(void)
{
	pthread_t t[6];
	pthread_attr_t attr;
	pthread_mutexattr_t ma;
	pthread_mutex_t m;
	pthread_spinlock_t spin;
	sem_t sem;
	void *ret;
	size_t size;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	pthread_attr_getstacksize(&attr, &size);
	num(size);
	pthread_key_create(&key, clean);
	pthread_barrier_init(&barrier, NULL, 6);
	for (int i = 0; i < 6; i++)
		if (pthread_create(&t[i], &attr, worker, (void *)(intptr_t)i))
			abort();
	for (int i = 0; i < 6; i++) {
		if (i >= 4)
			pthread_cancel(t[i]);
		pthread_join(t[i], &ret);
		num((intptr_t)ret);
	}
	num(cleaned + onces * 100);
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_settype(&ma, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&m, &ma);
	num(pthread_mutex_lock(&m) + pthread_mutex_lock(&m) + pthread_mutex_trylock(&m) +
	    pthread_mutex_unlock(&m) + pthread_mutex_unlock(&m));
	pthread_mutex_destroy(&m);
	pthread_mutex_lock(&lock);
	num(pthread_cond_timedwait(&cond, &lock, &(struct timespec){ 1, 0 }) +
	    pthread_mutex_timedlock(&lock, &(struct timespec){ 1, 0 }));
	pthread_mutex_unlock(&lock);
	pthread_spin_init(&spin, 0);
	num(pthread_spin_lock(&spin) + pthread_spin_trylock(&spin) + pthread_spin_unlock(&spin));
	sem_init(&sem, 0, 1);
	num(sem_wait(&sem) + sem_trywait(&sem) + sem_post(&sem) +
	    sem_timedwait(&sem, &(struct timespec){ 1, 0 }) + sem_destroy(&sem));
	num(pthread_rwlock_wrlock(&rw) + pthread_rwlock_tryrdlock(&rw) +
	    pthread_rwlock_unlock(&rw));
	num(pthread_setname_np(pthread_self(), "torture") + pthread_equal(t[0], t[1]) * 0 +
	    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) +
	    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	cpu_set_t cpus;
	num(sched_getaffinity(0, sizeof(cpus), &cpus) + (CPU_COUNT(&cpus) > 0) +
	    sched_get_priority_max(SCHED_FIFO));
	pthread_attr_destroy(&attr);
	pthread_key_delete(key);
}

static void at_fork(void)
{
	num(77);
}

static void children(void)
{
	extern char **environ;
	char buf[200];
	int status, p[2];
	pid_t pid;

	pthread_atfork(at_fork, at_fork, at_fork);
	fflush(stdout);
	for (int i = 0; i < 5; i++) {
		pid = fork();
		if (!pid) {
			snprintf(buf, sizeof(buf), "%d", i);
			if (i == 3)
				abort();
			if (i == 4)
				raise(SIGTERM);
			_exit(atoi(buf) + 10);
		}
		waitpid(pid, &status, 0);
		num(status & ~0x80);
	}
	num(system("exit 7"));
	FILE *f = popen("echo from a shell; cat /dev/null", "r");
	str(fgets(buf, sizeof(buf), f));
	num(pclose(f));
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&at);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
	num(pipe(p) + posix_spawn_file_actions_adddup2(&fa, p[1], 1) +
	    posix_spawn_file_actions_addclose(&fa, p[0]));
	num(posix_spawnp(&pid, "echo", &fa, &at, (char *[]){ "echo", "spawned", NULL }, environ));
	num(waitpid(pid, &status, 0) == pid);
	num(status);
	num(read(p[0], buf, sizeof(buf)));
	add(buf, 8);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&at);
	num(posix_spawn(&pid, "/nonexistent", NULL, NULL, (char *[]){ "x", NULL }, environ));
	pid = vfork();
	if (!pid) {
		execlp("sh", "sh", "-c", "exit 5", NULL);
		_exit(1);
	}
	wait4(pid, &status, 0, NULL);
	num(status);
	void *self = dlopen(NULL, RTLD_LAZY), *m = dlopen("libm.so.6", RTLD_NOW);
	Dl_info info;
	num(self && dlsym(self, "qsort") == (void *)qsort);
	num(m && dlsym(m, "cos") && dladdr(dlsym(m, "cos"), &info));
	num(dlsym(self, "no such symbol") == NULL);
	num(dlerror() != NULL);
	if (m)
		num(dlclose(m));
}

static void leaves(void)
{
	puts("leaves");
}

int main(void)
{
	char line[20];

	setvbuf(stdout, NULL, _IOFBF, 4096);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	atexit(leaves);
	strings();
	say("strings");
	tables();
	say("tables");
	numbers();
	say("numbers");
	wide();
	say("wide");
	files();
	say("files");
	patterns();
	say("patterns");
	times();
	say("times");
	memory();
	say("memory");
	network();
	say("network");
	ipc();
	say("ipc");
	signals();
	say("signals");
	contexts();
	say("contexts");
	threads();
	say("threads");
	children();
	say("children");
	puts("END-OF-RUN");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	return (int)(sum & 63);
}
