/* SPDX-License-Identifier: MIT */
/*
 * Through the corners of libc that programs seldom meet: every conversion of printf
 * and scanf, positional and wide; dates, numbers of all widths, words, patterns,
 * messages, options, name service against a server of its own, accounts, streams,
 * locks of every kind, terminals, trees of files, conversions of characters.  Says
 * what came out, nothing of which depends on time or chance.
 */
#define _GNU_SOURCE
#define __STDC_WANT_IEC_60559_TYPES_EXT__ 1
#include <argp.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fenv.h>
#include <fmtmsg.h>
#include <fnmatch.h>
#include <fstab.h>
#include <fts.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <gshadow.h>
#include <iconv.h>
#include <inttypes.h>
#include <langinfo.h>
#include <libintl.h>
#include <locale.h>
#include <malloc.h>
#include <mntent.h>
#include <monetary.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nl_types.h>
#include <nss.h>
#include <poll.h>
#include <printf.h>
#include <pthread.h>
#include <pty.h>
#include <pwd.h>
#include <regex.h>
#include <resolv.h>
#include <rpc/netdb.h>
#include <search.h>
#include <semaphore.h>
#include <setjmp.h>
#include <shadow.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>

#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>
#include <utmp.h>
#include <wchar.h>
#include <wctype.h>
#include <wordexp.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

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

static void wstr(const wchar_t *s)
{
	add(s, wcslen(s) * sizeof(*s));
}

static void say(const char *what)
{
	printf("%s %016" PRIx64 "\n", what, sum);
	fflush(stdout);
	sum = 0xcbf29ce484222325;
}

/* --- scanf ----------------------------------------------------------------- */

union any {
	char text[64];
	wchar_t wide[16];
};

static const char *const scans[][2] = {
	{ "12 -34 056 0x1f", "%d %i %i %i" },
	{ "0b101 -0x7 077 0", "%i %i %o %u" },
	{ "ff FF 0xff 0XFF zz", "%x %X %x %x %x" },
	{ "123456789012 -5 7 9", "%ld %hd %hhd %lld" },
	{ "1 2 3 4 5 6", "%jd %zd %td %Ld %qd %lu" },
	{ "12345 678", "%3d%2d %n%d" },
	{ "a bc def", "%c %2c %3c" },
	{ "word other third", "%s %*s %3s" },
	{ "w\xc3\xb6rter \xe2\x82\xac uro", "%ls %lc %S" },
	{ "abc123def]x", "%[a-z]%[0-9]%[^]]%[]x]" },
	{ "h\xc3\xa4\xc3\xb6 xyz", "%l[^ ] %l[x-z]" },
	{ "1.5 -2e3 .5 5.", "%f %e %g %a" },
	{ "1.5 -2e-3 inf nan", "%lf %le %lg %lf" },
	{ "0x1.8p3 0x.1 INFINITY nan(char)", "%lf %lf %lf %lf" },
	{ "3.25 1e4000 -0x1p-5", "%Lf %Le %La" },
	{ "1e 5", "%f%d" },
	{ "0x 5", "%lf%d" },
	{ "1,234,567 1,5", "%'d %'lf" },
	{ "7 8 9", "%2$d %1$d %3$d" },
	{ "one two", "%2$s %1$s" },
	{ "50% off", "%d%% %s" },
	{ "0x7f00 (nil)", "%p %p" },
	{ "", "%d" },
	{ "   ", "%s" },
	{ "12:34", "%d:%d" },
	{ "12;34", "%d:%d" },
	{ "+5 -+5", "%d %d" },
	{ "99999999999999999999 -99999999999999999999", "%ld %ld" },
	{ "12 34", "%Id %Iu" },
	{ "i n", "%f %f" },
	{ "infinit nano", "%3f%s %3f%s" },
	{ "\xe2\x82\xac\xe2\x82\xac", "%2lc" },
};

static void scan_wide(const char *text, const char *format, union any v[6])
{
	wchar_t t[100], f[100];

	memset(v, 0, 6 * sizeof(*v));
	mbstowcs(t, text, COUNT(t));
	mbstowcs(f, format, COUNT(f));
	num(swscanf(t, f, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]));
	add(v, 6 * sizeof(*v));
}

/* What is allocated for a conversion. */
static void scan_allocated(void)
{
	static const char *const forms[] = { "%ms %ms",   "%m[a-z] %ms", "%mc %ms",     "%m4c%ms",
		                             "%mls %mls", "%mS %mlc",    "%ml[a-z] %ms" };
	wchar_t wide[20];
	void *p[2];
	int n;

	for (size_t i = 0; i < COUNT(forms); i++) {
		p[0] = p[1] = NULL;
		n = sscanf("some words of text", forms[i], &p[0], &p[1]);
		num(n);
		if (n > 0)
			add(p[0], 1);
		free(p[0]);
		free(p[1]);
		p[0] = p[1] = NULL;
		mbstowcs(wide, forms[i], 20);
		n = swscanf(L"some words of text", wide, &p[0], &p[1]);
		num(n);
		if (n > 0)
			add(p[0], 1);
		free(p[0]);
		free(p[1]);
	}
}

static void scans_of_all_kinds(void)
{
	union any v[6];

	for (int utf8 = 0; utf8 < 2; utf8++) {
		setlocale(LC_ALL, utf8 ? "C.UTF-8" : "C");
		for (size_t i = 0; i < COUNT(scans); i++) {
			memset(v, 0, sizeof(v));
			num(sscanf(scans[i][0], scans[i][1], &v[0], &v[1], &v[2], &v[3], &v[4],
			           &v[5]));
			add(v, sizeof(v));
			scan_wide(scans[i][0], scans[i][1], v);
		}
		scan_allocated();
	}
	setlocale(LC_ALL, "C");
}

/* --- printf ---------------------------------------------------------------- */

static const char *const prints[] = {
	"%d|%+d|% d|%08d|%-8d|%.5d|%'d|%Id",
	"%u|%o|%#o|%x|%#x|%X|%#X|%#.8x",
	"%hhd|%hd|%hhu|%hx|%hho|%hi|%hhi|%hu",
	"%c|%5c|%-5c|%lc|%C|%c|%3lc|%-3lc",
	"%*d|%-*d|%0*d|%.*d",
	"%1$d|%2$5d|%3$-5d|%1$+d|%8$d|%7$x|%6$o|%5$u",
	"%2$*1$d|%3$-*1$d|%4$.*1$d|%5$0*1$x",
	"%8$hhd|%7$hd|%6$hu|%5$#x|%4$c|%3$lc|%2$i|%1$X",
	"%m|%%|%5%|%d|%d|%d|%d",
	"%z|%l|%y|%d",
};

static const char *const wides[] = {
	"%ld|%+ld|%020ld|%-20ld|%'ld|%.30ld|%lld|%jd",
	"%lu|%lo|%#lo|%lx|%#lX|%zu|%tx|%Lu",
	"%1$ld|%2$25ld|%3$-25lld|%1$+jd|%8$zd|%7$lx|%6$lo|%5$#jx",
	"%p|%p|%25p|%-25p|%.20p",
	"%5$p|%4$ju|%3$tu|%2$zx|%1$llo",
};

static const char *const floats[] = {
	"%f|%+.3f|% 015.2f|%-15.1f|%#.0f|%'f|%F|%.20f",
	"%e|%.0e|%#.0e|%E|%+15.3e|%-15.3E|%.25e|%e",
	"%g|%#g|%G|%.15g|%10.3g|%-10g|%.0g|%'g",
	"%a|%A|%.3a|%+20a|%-20a|%020a|%#.0a|%.0A",
	"%1$f|%2$e|%3$g|%4$a|%5$+12.3F|%6$-12E|%7$#G|%8$A",
};

static void print_wide(const char *format, ...)
{
	wchar_t f[120], out[900];
	va_list ap;
	int n;

	va_start(ap, format);
	mbstowcs(f, format, COUNT(f));
	n = vswprintf(out, COUNT(out), f, ap);
	va_end(ap);
	num(n);
	if (n > 0)
		add(out, n * sizeof(*out));
}

static void print_integers(const int v[8])
{
	char out[900];

	for (size_t i = 0; i < COUNT(prints); i++) {
		num(snprintf(out, sizeof(out), prints[i], v[0], v[1], v[2], v[3], v[4], v[5], v[6],
		             v[7]));
		str(out);
		print_wide(prints[i], v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
	}
	for (size_t i = 0; i < COUNT(wides); i++) {
		long w[8];

		for (int k = 0; k < 8; k++)
			w[k] = v[k] * 1234567890123l;
		num(snprintf(out, sizeof(out), wides[i], w[0], w[1], w[2], w[3], w[4], w[5], w[6],
		             w[7]));
		str(out);
		print_wide(wides[i], w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
	}
}

static void with_L(const char *form, char *out)
{
	for (; *form; form++) {
		if (strchr("aAeEfFgG", *form))
			*out++ = 'L';
		*out++ = *form;
	}
	*out = 0;
}

static void print_floats(double d)
{
	char out[3000], form[100];
	long double l = d;

	for (size_t i = 0; i < COUNT(floats); i++) {
		num(snprintf(out, sizeof(out), floats[i], d, -d, d / 3, d * 3, d, d, -d, d));
		str(out);
		print_wide(floats[i], d, -d, d / 3, d * 3, d, d, -d, d);
		with_L(floats[i], form);
		num(snprintf(out, sizeof(out), form, l, -l, l / 3, l * 3, l, l, -l, l));
		str(out);
		print_wide(form, l, -l, l / 3, l * 3, l, l, -l, l);
	}
	strfromf(out, 90, "%.9f", (float)d);
	str(out);
	strfroml(out, 90, "%.15g", l);
	str(out);
	strfromf128(out, 90, "%.25e", (_Float128)d / 3);
	str(out);
	strfromf32x(out, 90, "%a", d);
	str(out);
	strfromf64x(out, 90, "%A", l);
	str(out);
}

static void print_strings(void)
{
	static const char *const forms[] = { "%s|%10s|%-10s|%.*s", "%2$s|%1$-12s|%3$.4s",
		                             "%3$.*4$s|%2$*4$s|%1$s" };
	static const char *const wide_forms[] = { "%ls|%10ls|%-10S|%.3ls",
		                                  "%2$ls|%1$-12S|%3$.4ls" };
	char out[300];

	for (size_t i = 0; i < COUNT(forms); i++) {
		num(snprintf(out, sizeof(out), forms[i], "first", "second", "gr\xc3\xbc\xc3\x9f", 5,
		             "x"));
		str(out);
		print_wide(forms[i], "first", "second", "gr\xc3\xbc\xc3\x9f", 5, "x");
	}
	for (size_t i = 0; i < COUNT(wide_forms); i++) {
		num(snprintf(out, sizeof(out), wide_forms[i], L"first", L"gr\u00fc\u00df",
		             L"\u20ac\u20ac\u20ac", L"last"));
		print_wide(wide_forms[i], L"first", L"gr\u00fc\u00df", L"\u20ac\u20ac\u20ac",
		           L"last");
	}
	num(snprintf(out, sizeof(out), "%s %5s %ls", (char *)NULL, (char *)NULL, (wchar_t *)NULL));
}

static int print_own(FILE *f, const struct printf_info *info, const void *const *args)
{
	return fprintf(f, "<%d>", *(const int *)args[0]);
}

static int own_size(const struct printf_info *info, size_t n, int *types, int *size)
{
	if (n)
		types[0] = PA_INT;
	return 1;
}

static void prints_of_all_kinds(void)
{
	static const int v[][8] = { { 5, 12, -7, 65, 3, 2, 1, 9 },
		                    { 3, -1234567, 89, 66, 0, 77, 255, 32767 },
		                    { 10, 2147483647, -12, 97, 8, 100, 20, -2147483647 } };
	static const double d[] = { 0.0,    1.0,      -2.5,    1234567.891, 1e-7,    9.9999e22,
		                    5e-324, 1.79e308, 1 / 3.0, 0.000099995, 1 / 0.0, 0 / 0.0 };
	char out[200];

	/* A conversion of one's own has all others go the long way. */
	for (int own = 0; own < 2; own++) {
		setlocale(LC_ALL, own ? "C.UTF-8" : "C");
		if (own) {
			num(register_printf_specifier('Y', print_own, own_size));
			num(register_printf_specifier('K', printf_size, printf_size_info));
			snprintf(out, sizeof(out), "%Y and %5Y %d", 4, 5, 6);
			str(out);
			snprintf(out, sizeof(out), "%K %12.2K %-9k", 1536.0, 3e9, 7.0);
			str(out);
		}
		for (size_t i = 0; i < COUNT(v); i++)
			print_integers(v[i]);
		for (size_t i = 0; i < COUNT(d); i++)
			print_floats(d[i]);
		print_strings();
	}
	num(register_printf_specifier('Y', NULL, NULL));
	num(register_printf_specifier('K', NULL, NULL));
	setlocale(LC_ALL, "C");
}

/* --- numbers --------------------------------------------------------------- */

static const char *const numerals[] = {
	"0",
	"-0",
	"1",
	"+17",
	"  42",
	"123456789012345678901234567890",
	"0x1F",
	"0b1",
	"017",
	"",
	"-",
	"abc",
	"1.5",
	"-2.5e3",
	".5",
	"5.",
	"1e400",
	"-1e400",
	"1e-400",
	"4.9e-324",
	"2.2250738585072011e-308",
	"1.17549435e-38",
	"1.4e-45",
	"7.0e-46",
	"3.4028236e38",
	"1.7976931348623158e308",
	"1.7976931348623159e308",
	"0x1.8p3",
	"0x1p-1074",
	"0x1p-1075",
	"0x1.fffffffffffff8p1023",
	"0x.1p4",
	"0xp3",
	"inf",
	"-INFINITY",
	"nan",
	"nan(123)",
	"nan(0x7)",
	"NaN(x y)",
	"1e+",
	"1e",
	"0.000000000000000000000000000000000000000001",
	"9007199254740993",
	"9007199254740992.5000000000000000000000000000000000000000000001",
	"3.6e-4951",
	"1.1e4932",
	"6.4e-4966",
	"123,456",
	"1e99999999999",
	"0.1e-99999999999",
	"179769313486231570814527423731704356798070567525844996598917476803157260780028538760589",
};

static void number(const char *s)
{
	wchar_t w[120];
	char *end;
	wchar_t *wend;
	float f;
	double d;
	long double l;
	_Float128 q;

	mbstowcs(w, s, COUNT(w));
	errno = 0;
	f = strtof(s, &end);
	d = strtod(s, NULL);
	l = strtold(s, NULL);
	q = strtof128(s, NULL);
	num(end - s + errno);
	add(&f, sizeof(f));
	add(&d, sizeof(d));
	add(&l, 10);
	add(&q, sizeof(q));
	f = wcstof(w, &wend);
	d = wcstod(w, NULL);
	l = wcstold(w, NULL);
	q = wcstof128(w, NULL);
	num(wend - w);
	add(&f, sizeof(f));
	add(&d, sizeof(d));
	add(&l, 10);
	add(&q, sizeof(q));
	for (int base = 0; base <= 36; base += base ? 7 : 2) {
		num(strtol(s, &end, base) + (end - s));
		num((long)strtoul(s, NULL, base) + strtoll(s, NULL, base) +
		    (long)strtoull(s, NULL, base) + strtoimax(s, NULL, base) +
		    (long)strtoumax(s, NULL, base));
		num(wcstol(w, &wend, base) + (wend - w) + (long)wcstoul(w, NULL, base) +
		    wcstoll(w, NULL, base) + (long)wcstoull(w, NULL, base));
	}
	num(atoi(s) + atoll(s));
}

static void numbers(void)
{
	static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	char buf[100] = "";
	int point, neg;

	for (size_t m = 0; m < COUNT(modes); m++) {
		/* fesetround() is in libm. */
		unsigned int mxcsr = __builtin_ia32_stmxcsr();
		unsigned short cw, rc = (unsigned short)modes[m];

		__asm__ volatile("fnstcw %0" : "=m"(cw));
		cw = (unsigned short)((cw & ~0xc00) | rc);
		__asm__ volatile("fldcw %0" ::"m"(cw));
		__builtin_ia32_ldmxcsr((mxcsr & ~0x6000u) | (unsigned int)rc << 3);
		for (size_t i = 0; i < COUNT(numerals); i++)
			number(numerals[i]);
	}
	__builtin_ia32_ldmxcsr(0x1f80);
	__asm__ volatile("fldcw %0" ::"m"((unsigned short){ 0x37f }));
	for (double d = 1e-8; d < 1e12; d *= 37.7) {
		/* They may leave it as it was. */
		memset(buf, 0, sizeof(buf));
		ecvt_r(d, 8, &point, &neg, buf, sizeof(buf));
		str(buf);
		buf[0] = 0;
		fcvt_r(-d, 3, &point, &neg, buf, sizeof(buf));
		str(buf);
		buf[0] = 0;
		qecvt_r((long double)d, 12, &point, &neg, buf, sizeof(buf));
		str(buf);
		buf[0] = 0;
		qfcvt_r((long double)d, 2, &point, &neg, buf, sizeof(buf));
		str(buf);
		str(qgcvt((long double)d, 9, buf));
		/* Parts of what it writes it has not set. */
		num(strfmon(buf, sizeof(buf), "%n|%i|%^#6n|%(n|%!n|%-14n|%+.3n|%=0#7.0i", d, -d, d,
		            -d, d, d, -d, d) != 0);
	}
}

/* --- dates ----------------------------------------------------------------- */

static void format_date(const struct tm *tm)
{
	static const char conv[] = "aAbBcCdDeFgGhHIjklmMnNpPrRsStTuUvVwWxXyYzZ+%QE";
	static const char *const flags[] = {
		"", "_", "-", "0", "^", "#", "E", "O", "+", "12", "_9"
	};
	wchar_t wf[16], wout[200];
	char f[16], out[200];

	for (const char *c = conv; *c; c++)
		for (size_t i = 0; i < COUNT(flags); i++) {
			snprintf(f, sizeof(f), "%%%s%c", flags[i], *c);
			out[0] = 0;
			num((long)strftime(out, sizeof(out), f, tm));
			str(out);
			mbstowcs(wf, f, COUNT(wf));
			wout[0] = 0;
			num((long)wcsftime(wout, COUNT(wout), wf, tm));
			wstr(wout);
		}
}

static void parse_dates(void)
{
	static const char *const dates[][2] = {
		{ "2024-02-29T12:34:56", "%Y-%m-%dT%H:%M:%S" },
		{ "Thursday 29 February 2024", "%A %d %B %Y" },
		{ "thu feb 29 1:02:03 pm 2024", "%a %b %e %I:%M:%S %p %Y" },
		{ "02/29/24 13:14", "%D %R" },
		{ "13:14:15 24 060", "%T %y %j" },
		{ "Thu Feb 29 12:34:56 2024", "%c" },
		{ "02/29/24 12:34:56", "%x %X" },
		{ "12:34:56 AM 20 24", "%r %C %y" },
		{ "1700000000", "%s" },
		{ "2024 09 4", "%G %V %u" },
		{ "2024 09 4", "%Y %U %w" },
		{ "2024 09 4", "%Y %W %w" },
		{ "+0230 x", "%z x" },
		{ "-02:30", "%z" },
		{ "Z CET", "%z %Z" },
		{ "2024-02-29", "%F" },
		{ " 5 \t 6", "%k%n%l" },
		{ "24 12 31", "%Ey %Om %Od" },
		{ "50%", "%M%%" },
		{ "99", "%m" },
		{ "xyz", "%b" },
		{ "7", "%q" },
	};
	struct tm tm;
	const char *end;

	for (size_t i = 0; i < COUNT(dates); i++) {
		memset(&tm, 0, sizeof(tm));
		end = strptime(dates[i][0], dates[i][1], &tm);
		num(end ? end - dates[i][0] : -1);
		add(&tm, 9 * sizeof(int));
		num(tm.tm_gmtoff);
	}
}

static void dates(void)
{
	static const char *const zones[] = { "UTC",
		                             "EST5EDT,M3.2.0,M11.1.0",
		                             "<+0330>-3:30<+0430>,J79/24,J263/24",
		                             "AEST-10AEDT,M10.1.0,M4.1.0/3",
		                             "XXX5YYY,60/0,300",
		                             ":Europe/Berlin",
		                             "broken",
		                             "A" };
	struct tm tm, *out;
	char buf[100], mask[] = "maskXXXXXX";
	int fd = mkstemp(mask);
	time_t t;

	for (size_t z = 0; z < COUNT(zones); z++) {
		setenv("TZ", zones[z], 1);
		tzset();
		for (t = -60000000000; t < 60000000000; t += 2345678901) {
			if (!localtime_r(&t, &tm))
				continue;
			add(&tm, 9 * sizeof(int));
			num(mktime(&tm));
			tm.tm_isdst = -1;
			tm.tm_mon += 14;
			tm.tm_mday -= 45;
			num(mktime(&tm));
			str(asctime_r(&tm, buf));
			num(timegm(&tm));
		}
		t = 1700000000 + 7000000 * (long)z;
		localtime_r(&t, &tm);
		format_date(&tm);
	}
	parse_dates();
	num(write(fd, "%Y-%m-%d %H:%M\n%d %B %Y\n%H:%M:%S\n", 35));
	close(fd);
	setenv("DATEMSK", mask, 1);
	out = getdate("2024-02-29 10:20");
	num(out ? out->tm_yday : getdate_err);
	out = getdate("3 March 2021");
	num(out ? out->tm_yday : getdate_err);
	num(getdate("nonsense") ? 1 : getdate_err);
	unlink(mask);
	setenv("TZ", "UTC", 1);
	tzset();
}

/* --- words and patterns ----------------------------------------------------- */

static void expand(void)
{
	static const char *const texts[] = {
		"plain words here",
		"~ ~root ~nobody/x",
		"$TOUR ${TOUR} \"$TOUR\" '$TOUR'",
		"${TOUR:-d} ${NONE:-default} ${NONE-other}",
		"${NONE:+alt} ${TOUR:+alternate}",
		"${ASSIGN:=value} $ASSIGN",
		"${#TOUR} ${#NONE}",
		"${TOUR#*a} ${TOUR##*a}",
		"${TOUR%a*} ${TOUR%%a*}",
		"${NONE:?is missing}",
		"$((1+2*3)) $(( (7-2)/2 ))",
		"$[4*5]",
		"$((-3)) $((0x10))",
		"$((1/0))",
		"a\\ b \"c\\\"d\" e\\\nf",
		"tour.d/* none*",
		"[a-b]* ?",
		"$? $$x $1 $# $* $@",
		"unbalanced \"quote",
		"unbalanced ${",
		"a|b",
		"a;b",
		"$(echo x)",
		"`echo y`",
		"{a,b}",
		"$'x'",
		"\"$*\" \"$@\" $0",
		"${TOUR/a/b}",
		"mixed\"in $TOUR\"word'and'more",
	};
	static const int flags[] = { 0, WRDE_NOCMD, WRDE_UNDEF | WRDE_NOCMD, WRDE_SHOWERR,
		                     WRDE_DOOFFS };
	wordexp_t w;

	setenv("TOUR", "a banana and more", 1);
	for (size_t i = 0; i < COUNT(texts); i++)
		for (size_t k = 0; k < COUNT(flags); k++) {
			memset(&w, 0, sizeof(w));
			w.we_offs = 2;
			unsetenv("ASSIGN");
			num(strstr(texts[i], "$$") ? 0 : wordexp(texts[i], &w, flags[k]));
			for (size_t n = 0; w.we_wordv && n < w.we_wordc; n++)
				str(w.we_wordv[n + (flags[k] == WRDE_DOOFFS ? 2 : 0)]);
			if (w.we_wordv)
				wordfree(&w);
		}
}

static const char *const globs[] = { "tour.d/*",
	                             "tour.d/[ab]*",
	                             "tour.d/{a,b,z}*",
	                             "*/sub",
	                             "*/*/deep",
	                             "tour.d/none",
	                             "~",
	                             "~root",
	                             "~nosuchuser/x",
	                             "tour.d/\\a*",
	                             "tour.d/.h*",
	                             "tour.d/?",
	                             "/",
	                             "tour.?/[!a]*",
	                             "{tour.d,none}/{a*,s*}",
	                             "tour.d//sub/",
	                             "[",
	                             "" };

static void *open_dir(const char *path)
{
	return opendir(path);
}

static int on_glob_error(const char *path, int err)
{
	num(err);
	return 0;
}

static void expand_paths(void)
{
	static const int flags[] = { 0,
		                     GLOB_MARK | GLOB_BRACE,
		                     GLOB_NOCHECK | GLOB_TILDE,
		                     GLOB_NOMAGIC | GLOB_BRACE | GLOB_TILDE,
		                     GLOB_PERIOD | GLOB_ONLYDIR,
		                     GLOB_NOESCAPE | GLOB_NOSORT,
		                     GLOB_TILDE_CHECK | GLOB_BRACE,
		                     GLOB_ALTDIRFUNC | GLOB_BRACE,
		                     GLOB_DOOFFS };
	glob_t g;
	size_t n;

	for (size_t i = 0; i < COUNT(globs); i++)
		for (size_t k = 0; k < COUNT(flags); k++) {
			memset(&g, 0, sizeof(g));
			g.gl_offs = 3;
			g.gl_opendir = open_dir;
			g.gl_readdir = (struct dirent * (*)(void *)) readdir;
			g.gl_closedir = (void (*)(void *))closedir;
			g.gl_stat = (int (*)(const char *, struct stat *))stat;
			g.gl_lstat = (int (*)(const char *, struct stat *))lstat;
			num(glob(globs[i], flags[k], on_glob_error, &g));
			num((long)g.gl_pathc);
			n = flags[k] & GLOB_DOOFFS ? 3 : 0;
			for (size_t p = 0; !(flags[k] & GLOB_NOSORT) && p < g.gl_pathc; p++)
				str(g.gl_pathv[p + n]);
			globfree(&g);
		}
	num(glob("tour.d/a*", 0, NULL, &g) + glob("tour.d/s*", GLOB_APPEND, NULL, &g));
	num((long)g.gl_pathc);
	globfree(&g);
}

static void match(void)
{
	static const char *const pats[] = {
		"*",
		"a*b",
		"?[a-c]?",
		"[!x-z]*",
		"[[:alpha:]][[:digit:]]*",
		"\\*x",
		"a/*/c",
		"*.c",
		"@(one|two)",
		"!(one|two)",
		"*(ab|c)",
		"+(a|b)c",
		"?(x)y",
		"[[=a=]]*",
		"[[.hyphen.]-]*",
		"[]-]*",
		"[a",
		"**/x",
		"a**b*c",
		"[^a]*",
		"[\\]]",
		"*[[:space:]]*",
		"g\xc3\xbc*",
		"[\xc3\xa4-\xc3\xbc]",
		"+(*(a)|@(b|c))d",
		"a[/]b",
		"*\\",
		"[[:nosuch:]]",
		"!(*.o|*.c)",
		"*(a|!(b))c",
	};
	static const char *const texts[] = { "",
		                             "a",
		                             "ab",
		                             "axxb",
		                             "xbz",
		                             "a1b2",
		                             "*x",
		                             "a/b/c",
		                             "prog.c",
		                             ".hidden.c",
		                             "one",
		                             "three",
		                             "ababc",
		                             "aabc",
		                             "xy",
		                             "y",
		                             "-dash",
		                             "]",
		                             "g\xc3\xbc\xc3\x9f",
		                             "\xc3\xb6",
		                             "a b",
		                             "bcd",
		                             "A/B/C",
		                             "lib.o" };
	static const int flags[] = { 0,
		                     FNM_PATHNAME | FNM_PERIOD,
		                     FNM_EXTMATCH,
		                     FNM_EXTMATCH | FNM_PATHNAME | FNM_PERIOD,
		                     FNM_CASEFOLD,
		                     FNM_NOESCAPE | FNM_LEADING_DIR,
		                     FNM_EXTMATCH | FNM_CASEFOLD };

	for (size_t i = 0; i < COUNT(pats); i++)
		for (size_t k = 0; k < COUNT(texts); k++)
			for (size_t f = 0; f < COUNT(flags); f++)
				num(fnmatch(pats[i], texts[k], flags[f]));
}

static const char *const res[] = {
	"abc",
	"a*b+c?",
	"(a|b|c)*d",
	"^(.)(.).?\\2\\1$",
	"[[:alpha:]_][[:alnum:]_]*",
	"[^[:space:]]+[[:space:]]",
	"x{2}",
	"x{2,}",
	"x{,3}",
	"x{1,3}y",
	"(a(b(c)?)?)+",
	"\\bword\\b",
	"\\<the\\>|\\Bx",
	"\\w+\\W",
	"(^|,)[^,]*",
	"a.*b.*c",
	"[a-c][x-z]|[[.a.]]",
	"[[=e=]]x",
	"()",
	"(|a)",
	"a||b",
	"*a",
	"+",
	"a{1",
	"a{2,1}",
	"[b-a]",
	"(",
	")",
	"[",
	"\\",
	"a\\{2\\}",
	"\\(ab\\)*\\1",
	"((((x))))",
	"g\xc3\xbc+",
	"[\xc3\xa0-\xc3\xbf]+",
	"\\`a",
	"a\\'",
	"\\s\\S",
	"(x*)*",
	"(a|ab)(c|bcd)(d*)",
	"[[:upper:]]+[[:lower:]]*",
	"\\.$",
	"^$",
	"[a-z]*z$",
	"(a*)(b*)\\1\\2",
};

static const char *const subjects[] = {
	"",
	"abc",
	"aaabbbccc",
	"abcabcd",
	"abba",
	"a_long_identifier = 42;",
	"the word is x, the end",
	"xxxxy",
	"g\xc3\xbc\xc3\xbc\xc3\x9f \xc3\xa9t\xc3\xa9",
	"ABC Def ghi",
	"a,b,,c",
	"line one\nline two\n",
	"abcdabcdabcd",
	"zzzz.",
	"aabaab",
};

static void patterns(void)
{
	regmatch_t m[10];
	char buf[200];
	regex_t r;

	for (int cflags = 0; cflags < 16; cflags++)
		for (size_t i = 0; i < COUNT(res); i++) {
			int err = regcomp(&r, res[i], cflags);

			num(err);
			regerror(err, &r, buf, sizeof(buf));
			str(buf);
			for (size_t k = 0; !err && k < COUNT(subjects); k++) {
				int found = regexec(&r, subjects[k], 10, m, k % 4);

				num(found);
				if (!found && !(cflags & REG_NOSUB))
					add(m, sizeof(*m) * (r.re_nsub < 9 ? r.re_nsub + 1 : 10));
				m[0] = (regmatch_t){ 1, (int)strlen(subjects[k]) };
				if (*subjects[k])
					num(regexec(&r, subjects[k], 10, m, REG_STARTEND));
			}
			if (!err)
				regfree(&r);
		}
}

/* The older interface, with other grammars and a translation. */
static void gnu_patterns(void)
{
	static const reg_syntax_t syntax[] = { RE_SYNTAX_EMACS,
		                               RE_SYNTAX_AWK,
		                               RE_SYNTAX_GREP,
		                               RE_SYNTAX_EGREP,
		                               RE_SYNTAX_POSIX_EXTENDED,
		                               RE_SYNTAX_POSIX_BASIC | RE_NO_GNU_OPS,
		                               RE_SYNTAX_SED };
	static unsigned char upper[256];
	char map[256];

	for (int c = 0; c < 256; c++)
		upper[c] = (unsigned char)(c >= 'a' && c <= 'z' ? c - 32 : c);
	for (size_t s = 0; s < COUNT(syntax); s++)
		for (size_t i = 0; i < COUNT(res); i++) {
			struct re_pattern_buffer p = { .fastmap = i % 2 ? map : NULL,
				                       .translate = i % 3 ? NULL : upper };
			struct re_registers regs = { 0 };

			re_set_syntax(syntax[s]);
			const char *err = re_compile_pattern(res[i], strlen(res[i]), &p);
			str(err);
			for (size_t k = 0; !err && k < COUNT(subjects); k++) {
				int len = (int)strlen(subjects[k]);

				num(re_search(&p, subjects[k], len, 0, len, &regs));
				num(re_search(&p, subjects[k], len, len, -len, NULL));
				num(re_match(&p, subjects[k], len, 0, NULL));
				num(re_search_2(&p, subjects[k], len / 2, subjects[k] + len / 2,
				                len - len / 2, 0, len, NULL, len));
			}
			free(regs.start);
			free(regs.end);
			p.fastmap = NULL;
			p.translate = NULL;
			regfree(&p);
		}
}

static void words(void)
{
	num(mkdir("tour.d", 0755) + mkdir("tour.d/sub", 0755) + mkdir("tour.d/sub/deep", 0700));
	for (const char *const *f = (const char *const[]){ "a1", "a2", "b1", ".hid", "{x}", NULL };
	     *f; f++) {
		char path[40];

		snprintf(path, sizeof(path), "tour.d/%s", *f);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	for (int utf8 = 0; utf8 < 2; utf8++) {
		setlocale(LC_ALL, utf8 ? "C.UTF-8" : "C");
		expand();
		expand_paths();
		match();
		patterns();
		gnu_patterns();
	}
	setlocale(LC_ALL, "C");
}

/* --- trees of files --------------------------------------------------------- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void trees(void)
{
	static const int flags[] = { FTS_PHYSICAL, FTS_LOGICAL | FTS_NOCHDIR,
		                     FTS_PHYSICAL | FTS_SEEDOT,
		                     FTS_PHYSICAL | FTS_NOSTAT | FTS_XDEV,
		                     FTS_COMFOLLOW | FTS_LOGICAL };
	char *paths[] = { "tour.d", "nosuch", NULL };
	FTSENT *e;
	FTS *f;

	num(symlink("sub", "tour.d/link") + symlink("..", "tour.d/loop") +
	    symlink("no", "tour.d/broken"));
	for (size_t i = 0; i < COUNT(flags); i++) {
		f = fts_open(paths, flags[i], by_name);
		while (f && (e = fts_read(f))) {
			num(e->fts_info * 100 + e->fts_level);
			str(e->fts_name);
			if (e->fts_info == FTS_D && e->fts_level == 0)
				for (FTSENT *c = fts_children(f, 0); c; c = c->fts_link)
					str(c->fts_name);
			if (e->fts_info == FTS_SL)
				fts_set(f, e, FTS_FOLLOW);
			if (!strcmp(e->fts_name, "deep"))
				fts_set(f, e, FTS_SKIP);
		}
		num(fts_close(f));
	}
}

/* --- messages --------------------------------------------------------------- */

/* A catalogue of gettext, as its files are. */
static void write_mo(const char *path)
{
	static const char *const pair[][2] = {
		{ "", "Content-Type: text/plain; charset=UTF-8\n"
		      "Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && "
		      "n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\n" },
		{ "apple\0apples", "jabko\0jabka\0jabek" },
		{ "hello", "gr\xc3\xbc\xc3\x9f dich" },
	};
	static const uint32_t len[][2] = { { 0, 163 }, { 12, 17 }, { 5, 11 } };
	uint32_t head[7] = { 0x950412de, 0, 3, 28, 28 + 24, 0, 0 }, table[12], at = 28 + 48;
	FILE *f = fopen(path, "w");
	uint32_t n;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 3; i++) {
			n = i ? len[i][k] : (uint32_t)strlen(pair[i][k]);
			table[k * 6 + i * 2] = n;
			table[k * 6 + i * 2 + 1] = at;
			at += n + 1;
		}
	fwrite(head, sizeof(head), 1, f);
	fwrite(table, sizeof(table), 1, f);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 3; i++)
			fwrite(pair[i][k], 1, table[k * 6 + i * 2] + 1, f);
	fclose(f);
}

/* One of catgets(), with one message. */
static void write_cat(const char *path)
{
	uint32_t obj[] = { 0x960408de, 1, 1, 2, 1, 0, 2, 1, 0 };
	FILE *f = fopen(path, "w");

	fwrite(obj, sizeof(obj), 1, f);
	fwrite("a message", 1, 10, f);
	fclose(f);
}

static void messages(void)
{
	nl_catd cat;

	num(mkdir("tour.d/xx", 0755) + mkdir("tour.d/xx/LC_MESSAGES", 0755));
	write_mo("tour.d/xx/LC_MESSAGES/tour.mo");
	setlocale(LC_ALL, "C.UTF-8");
	setenv("LANGUAGE", "yy:xx", 1);
	str(bindtextdomain("tour", "tour.d") ? "bound" : NULL);
	str(textdomain("tour"));
	str(gettext("hello"));
	str(dgettext("nosuch", "hello"));
	str(dcgettext("tour", "unknown", LC_MESSAGES));
	for (unsigned long n = 0; n < 30; n++)
		str(ngettext("apple", "apples", n));
	str(bind_textdomain_codeset("tour", "ISO-8859-1"));
	str(gettext("hello"));
	str(bind_textdomain_codeset("tour", "ASCII//TRANSLIT"));
	str(gettext("hello"));
	str(dcngettext("tour", "apple", "apples", 3, LC_MESSAGES));
	unsetenv("LANGUAGE");
	setlocale(LC_ALL, "C");
	write_cat("tour.d/one.cat");
	cat = catopen("./tour.d/one.cat", 0);
	num(cat == (nl_catd)-1 ? -1 : 1);
	if (cat != (nl_catd)-1) {
		str(catgets(cat, 1, 1, "default"));
		str(catgets(cat, 7, 9, "default"));
		num(catclose(cat));
	}
	setenv("NLSPATH", "tour.d/%N.%L.cat:tour.d/%l_%t/%c/%N%%", 1);
	num(catopen("nosuch", NL_CAT_LOCALE) == (nl_catd)-1);
}

/* --- options ---------------------------------------------------------------- */

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	num(key);
	if (key == 'x' || key == ARGP_KEY_ARG)
		str(arg);
	if (key == 'e')
		argp_error(state, "an error of %s", "ours");
	if (key == 'f')
		argp_failure(state, 0, ENOENT, "a failure");
	return key == ARGP_KEY_ARG && state->arg_num > 2 ? ARGP_ERR_UNKNOWN : 0;
}

static char *filter(int key, const char *text, void *input)
{
	return key == ARGP_KEY_HELP_EXTRA ? strdup("what a filter adds") : (char *)text;
}

static const struct argp_option child_options[] = { { "child", 'c', NULL, 0, "of the child", 0 },
	                                            { 0 } };
static const struct argp child_argp = { child_options, parse_option, NULL, "What the child does." };
static const struct argp_child children[] = { { &child_argp, 0, "Of the child:", 7 }, { 0 } };
static const struct argp_option options[] = {
	{ "extra", 'x', "VALUE", 0,
	  "An option with a value, whose text is long enough that it has to go on in lines of its "
	  "own",
	  0 },
	{ "alias", 'y', NULL, OPTION_ALIAS, NULL, 0 },
	{ "maybe", 'm', "N", OPTION_ARG_OPTIONAL, "A value or none", 1 },
	{ NULL, 0, NULL, 0, "A group of its own:", 2 },
	{ "hidden", 'h', NULL, OPTION_HIDDEN, "not shown", 2 },
	{ "error", 'e', NULL, 0, "fails", 2 },
	{ "failure", 'f', NULL, 0, "fails otherwise", -1 },
	{ "no-usage", 'u', NULL, OPTION_NO_USAGE, "is in no usage", 0 },
	{ "doc", 0, NULL, OPTION_DOC, "is only told of", 3 },
	{ 0 }
};

static void argp_tour(void)
{
	static const struct argp argp = { options,
		                          parse_option,
		                          "FILE...\nOTHER [MORE]",
		                          "What it is for.\vWhat is said at the end.",
		                          children,
		                          filter,
		                          NULL };
	static char *const lines[][6] = {
		{ "tour", "-x", "1", "--extra=2", "file", NULL },
		{ "tour", "--maybe", "--maybe=3", "-m4", "-c", NULL },
		{ "tour", "--unknown", NULL },
		{ "tour", "-z", NULL },
		{ "tour", "-x", NULL },
		{ "tour", "--ex", "5", "--", "-x", NULL },
		{ "tour", "-e", NULL },
		{ "tour", "-f", NULL },
		{ "tour", "--help", NULL },
		{ "tour", "--usage", NULL },
		{ "tour", "a", "b", "c", "d", NULL },
	};
	static const unsigned int flags[] = { ARGP_NO_EXIT,
		                              ARGP_NO_EXIT | ARGP_IN_ORDER | ARGP_LONG_ONLY,
		                              ARGP_NO_EXIT | ARGP_NO_ERRS,
		                              ARGP_NO_EXIT | ARGP_NO_ARGS };
	char *text = NULL;
	size_t len;
	FILE *f;

	for (size_t k = 0; k < COUNT(flags); k++)
		for (size_t i = 0; i < COUNT(lines); i++) {
			char *argv[6];
			int argc = 0;

			while (lines[i][argc]) {
				argv[argc] = lines[i][argc];
				argc++;
			}
			argv[argc] = NULL;
			num(argp_parse(&argp, argc, argv, flags[k], NULL, NULL));
		}
	for (int fmt = 0; fmt < 2; fmt++) {
		f = open_memstream(&text, &len);
		argp_help(&argp, f, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, "tour");
		argp_help(&argp, f, ARGP_HELP_LONG | ARGP_HELP_SEE | ARGP_HELP_BUG_ADDR, "tour");
		argp_help(&argp, f, ARGP_HELP_USAGE | ARGP_HELP_SHORT_USAGE, "tour");
		fclose(f);
		str(text);
		free(text);
		setenv("ARGP_HELP_FMT",
		       "dup-args,no-dup-args-note,short-opt-col=4,long-opt-col=8,rmargin=60,opt-"
		       "doc-col=20,bad",
		       1);
	}
}

static void getopt_tour(void)
{
	static const struct option longs[] = { { "verbose", no_argument, NULL, 'v' },
		                               { "version", no_argument, NULL, 'V' },
		                               { "file", required_argument, NULL, 'f' },
		                               { "level", optional_argument, NULL, 'l' },
		                               { 0 } };
	static char *const lines[][8] = {
		{ "t", "-a", "x", "--verb", "--file", "y", "rest", NULL },
		{ "t", "--ver", NULL },
		{ "t", "--file", NULL },
		{ "t", "--level=3", "--level", "z", NULL },
		{ "t", "--verbose=1", NULL },
		{ "t", "-f", NULL },
		{ "t", "-q", NULL },
		{ "t", "x", "-a", "y", "--", "-b", NULL },
		{ "t", "-W", "file=2", NULL },
		{ "t", "-vfile", "-file", "z", NULL },
	};
	static const char *const forms[] = { "af:vl::", "+af:", "-af:vW;", ":af:" };
	int c;

	for (size_t i = 0; i < COUNT(lines) * COUNT(forms) * 2; i++) {
		char *argv[8] = { NULL };
		int argc = 0;

		while (lines[i % COUNT(lines)][argc]) {
			argv[argc] = lines[i % COUNT(lines)][argc];
			argc++;
		}
		optind = 0;
		const char *form = forms[i / COUNT(lines) % COUNT(forms)];
		while ((c = i < COUNT(lines) * COUNT(forms)
		                    ? getopt_long(argc, argv, form, longs, NULL)
		                    : getopt_long_only(argc, argv, form, longs, NULL)) != -1) {
			num(c);
			str(optarg);
		}
		num(optind);
	}
}

/* --- name service ----------------------------------------------------------- */

static unsigned char *put_name(unsigned char *p, const char *name)
{
	for (const char *dot; *name; name = *dot ? dot + 1 : dot) {
		dot = strchrnul(name, '.');
		*p++ = (unsigned char)(dot - name);
		memcpy(p, name, (size_t)(dot - name));
		p += dot - name;
	}
	*p++ = 0;
	return p;
}

static unsigned char *put_record(unsigned char *p, int type, const void *data, size_t len)
{
	NS_PUT16(0xc00c, p);
	NS_PUT16(type, p);
	NS_PUT16(ns_c_in, p);
	NS_PUT32(60, p);
	NS_PUT16(len, p);
	memcpy(p, data, len);
	return p + len;
}

/* The answer to a question: an alias for "alias", none for "none", too long for "big". */
static size_t answer(unsigned char *a, const unsigned char *q, size_t len, bool tcp)
{
	unsigned char *p = a + len, name[64];
	size_t n = 12;
	int type, count = 0;

	memcpy(a, q, len);
	while (n < len && q[n])
		n += q[n] + 1u;
	type = q[n + 1] << 8 | q[n + 2];
	a[2] = 0x85;
	a[3] = 0x80;
	p = a + n + 5;
	a[11] = 0; /* no additional record */
	if (!memcmp(q + 13, "none", 4))
		a[3] |= ns_r_nxdomain;
	else if (!memcmp(q + 13, "fail", 4))
		a[3] |= ns_r_servfail;
	else if (!memcmp(q + 13, "big", 3) && !tcp)
		a[2] |= 2;
	else if (!memcmp(q + 13, "alias", 5) && type != ns_t_ptr) {
		p = put_record(p, ns_t_cname, name, (size_t)(put_name(name, "real.test") - name));
		count = 1;
	} else
		for (int i = 0; i < (tcp ? 40 : 3); i++, count++)
			p = type == ns_t_a ? put_record(p, type, (char[]){ 10, 1, 2, (char)i }, 4)
			    : type == ns_t_aaaa
			            ? put_record(p, type, (char[16]){ 0x20, 1, [15] = (char)i }, 16)
			    : type == ns_t_ptr
			            ? put_record(p, type, name,
			                         (size_t)(put_name(name, "back.test") - name))
			            : put_record(p, type, "\3txt", 4);
	a[6] = 0;
	a[7] = (unsigned char)count;
	return (size_t)(p - a);
}

static int udp, tcp;

static void *serve(void *arg)
{
	struct pollfd pfd[] = { { udp, POLLIN, 0 }, { tcp, POLLIN, 0 } };
	unsigned char q[600], a[4096];
	struct sockaddr_in from;
	socklen_t len;
	ssize_t n;
	int fd;

	for (;;) {
		poll(pfd, 2, -1);
		if (pfd[0].revents) {
			len = sizeof(from);
			n = recvfrom(udp, q, sizeof(q), 0, (void *)&from, &len);
			if (n < 12)
				return NULL;
			n = (ssize_t)answer(a, q, (size_t)n, false);
			sendto(udp, a, (size_t)n, 0, (void *)&from, len);
		}
		if (!pfd[1].revents)
			continue;
		fd = accept(tcp, NULL, NULL);
		while (read(fd, q, 2) == 2 && (n = read(fd, q + 2, q[0] << 8 | q[1])) > 0) {
			n = (ssize_t)answer(a + 2, q + 2, (size_t)n, true);
			a[0] = (unsigned char)(n >> 8);
			a[1] = (unsigned char)n;
			if (write(fd, a, (size_t)n + 2) < 0)
				break;
		}
		close(fd);
	}
}

static void hosts(const struct hostent *h)
{
	num(h ? h->h_addrtype : -h_errno);
	if (!h)
		return;
	str(h->h_name);
	for (char **p = h->h_aliases; *p; p++)
		str(*p);
	for (char **p = h->h_addr_list; *p; p++)
		add(*p, (size_t)h->h_length);
}

static void ask_names(void)
{
	static const char *const names[] = { "one.test", "alias.test", "none.test", "big.test",
		                             "10.1.2.3", "::1",        "bad..name", "fail.test" };
	struct addrinfo *ai, hints = { .ai_socktype = SOCK_STREAM };
	static const int flags[] = { 0, AI_CANONNAME, AI_V4MAPPED | AI_ALL, AI_NUMERICHOST,
		                     AI_PASSIVE };
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6 };
	char host[100], serv[50];

	for (size_t i = 0; i < COUNT(names); i++) {
		hosts(gethostbyname(names[i]));
		hosts(gethostbyname2(names[i], AF_INET6));
		for (size_t k = 0; k < COUNT(flags) * COUNT(families); k++) {
			hints.ai_flags = flags[k % COUNT(flags)];
			hints.ai_family = families[k / COUNT(flags)];
			num(getaddrinfo(names[i], k % 2 ? "80" : NULL, &hints, &ai) ? -1 : 0);
			if (k % 5 == 0)
				str(gai_strerror(-(int)k));
			num(getaddrinfo(names[i], "80", &hints, &ai) ?: (freeaddrinfo(ai), 0));
		}
	}
	hosts(gethostbyaddr((char[]){ 10, 1, 2, 3 }, 4, AF_INET));
	hosts(gethostbyaddr((char[16]){ 0x20, 1 }, 16, AF_INET6));
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_port = htons(80),
		                  .sin_addr.s_addr = htonl(0x0a010203) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		                    .sin6_addr.s6_addr = { 0xfe, 0x80 },
		                    .sin6_scope_id = 1 };
	for (int f = 0; f < 32; f++) {
		num(getnameinfo((void *)&in, sizeof(in), host, sizeof(host), serv, sizeof(serv),
		                f));
		num(getnameinfo((void *)&in6, sizeof(in6), host, sizeof(host), serv, sizeof(serv),
		                f | NI_NUMERICHOST));
	}
}

static void dns_parts(void)
{
	unsigned char buf[512], packed[256];
	char name[256];
	int n;

	for (const char *const *s = (const char *const[]){ "a.b.test", "x\\.y.test", "\\065.test",
	                                                   "..", "", ".", NULL };
	     *s; s++) {
		n = ns_name_pton(*s, packed, sizeof(packed));
		num(n);
		if (n >= 0)
			num(ns_name_ntop(packed, name, sizeof(name)));
		n = dn_comp(*s, packed, sizeof(packed), NULL, NULL);
		num(n);
		if (n > 0)
			num(dn_expand(packed, packed + n, packed, name, sizeof(name)));
		num(ns_name_compress(*s, packed, sizeof(packed), NULL, NULL));
		num(res_hnok(*s) + 2 * res_dnok(*s) + 4 * res_mailok(*s) + 8 * res_ownok(*s));
	}
	num(res_mkquery(ns_o_query, "one.test", ns_c_in, ns_t_a, NULL, 0, NULL, buf, sizeof(buf)));
	num(res_mkquery(ns_o_notify, "one.test", ns_c_in, ns_t_a, (void *)"x", 1, NULL, buf,
	                sizeof(buf)));
	for (int type = 1; type < 60; type += 15)
		num(res_query("one.test", ns_c_in, type, buf, sizeof(buf)));
	num(res_search("one", ns_c_in, ns_t_a, buf, sizeof(buf)));
	num(res_querydomain("one", "test", ns_c_in, ns_t_aaaa, buf, sizeof(buf)));
	for (const char *const *s =
	             (const char *const[]){ "1.2.3.4", "0x7f.1", "1.2.3", "300.1.1.1",
	                                    "::", "1::2:3", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8",
	                                    "g::", "fe80::1%lo", NULL };
	     *s; s++) {
		n = inet_pton(strchr(*s, ':') ? AF_INET6 : AF_INET, *s, buf);
		num(n);
		if (n > 0)
			str(inet_ntop(strchr(*s, ':') ? AF_INET6 : AF_INET, buf, name,
			              sizeof(name)));
		num(inet_aton(*s, (void *)buf));

		str(inet_nsap_ntoa(4, (unsigned char *)"\1\2\3\4", name));
	}
}

static void names(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	pthread_t t;

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	num(bind(udp, (void *)&in, sizeof(in)) + getsockname(udp, (void *)&in, &len) +
	    bind(tcp, (void *)&in, sizeof(in)) + listen(tcp, 5));
	pthread_create(&t, NULL, serve, NULL);
	res_init();
	_res.nscount = 1;
	_res.nsaddr_list[0] = in;
	_res.retrans = 60;
	strcpy(_res.defdname, "test");
	_res.dnsrch[0] = _res.defdname;
	_res.dnsrch[1] = NULL;
	__nss_configure_lookup("hosts", "files dns");
	ask_names();
	dns_parts();
	sendto(udp, "end", 3, 0, (void *)&in, sizeof(in));
	pthread_join(t, NULL);
	close(udp);
	close(tcp);
}

/* --- accounts and other tables ----------------------------------------------- */

static FILE *text_file(const char *text)
{
	FILE *f = tmpfile();

	fputs(text, f);
	rewind(f);
	return f;
}

static void account_files(void)
{
	FILE *f = text_file("# no\n\nroot:x:0:0:Root:/root:/bin/sh\nbad "
	                    "line\n+nis\nx:y:nan:0:::\nu:p:5:6:g:h:s\n"),
	     *out = tmpfile();
	struct passwd *pw, pwb;
	struct group *gr, grb, *gp;
	struct spwd *sp, spb, *spp;
	struct sgrp *sg;
	char buf[500];

	while ((pw = fgetpwent(f))) {
		str(pw->pw_name);
		num(putpwent(pw, out));
	}
	rewind(f);
	num(fgetpwent_r(f, &pwb, buf, 20, &pw) + fgetpwent_r(f, &pwb, buf, sizeof(buf), &pw));
	fclose(f);
	f = text_file("root:x:0:\nstaff:*:50:a,b,c\nbroken\n-nis\nempty::9:\n");
	while ((gr = fgetgrent(f))) {
		str(gr->gr_name);
		num(putgrent(gr, out));
	}
	rewind(f);
	num(fgetgrent_r(f, &grb, buf, sizeof(buf), &gp));
	fclose(f);
	f = text_file("root:*:1:2:3:4:5:6:7\nx:!:::::::\ny:a\n");
	while ((sp = fgetspent(f))) {
		str(sp->sp_namp);
		num(putspent(sp, out));
	}
	num(sgetspent_r("q:w:1:2:3:::", &spb, buf, sizeof(buf), &spp));
	fclose(f);
	f = text_file("g:!:a,b:c\nh::\n");
	while ((sg = fgetsgent(f))) {
		str(sg->sg_namp);
		num(putsgent(sg, out));
	}
	fclose(f);
	rewind(out);
	while (fgets(buf, sizeof(buf), out))
		str(buf);
	fclose(out);
}

#define EACH(set, get, end, field)                  \
	do {                                        \
		set;                                \
		for (int i_ = 0; i_ < 10; i_++) {   \
			typeof(get) e_ = get;       \
			str(e_ ? e_->field : NULL); \
		}                                   \
		end;                                \
	} while (0)

static void tables(void)
{
	gid_t groups[50];
	char *host, *user, *domain;
	int n = 50;
	FILE *f;

	account_files();
	EACH(setpwent(), getpwent(), endpwent(), pw_name);
	EACH(setgrent(), getgrent(), endgrent(), gr_name);
	EACH(setspent(), getspent(), endspent(), sp_namp);
	EACH(setsgent(), getsgent(), endsgent(), sg_namp);
	EACH(setprotoent(1), getprotoent(), endprotoent(), p_name);
	EACH(setservent(1), getservent(), endservent(), s_name);
	EACH(setrpcent(1), getrpcent(), endrpcent(), r_name);
	EACH(setnetent(1), getnetent(), endnetent(), n_name);
	EACH(sethostent(1), gethostent(), endhostent(), h_name);
	EACH((void)0, getfsent(), endfsent(), fs_spec);
	num(getpwnam("nobody") != NULL);
	num(getpwuid(12345) != NULL);
	num(getgrnam("nogroup") != NULL);
	num(getgrgid(54321) != NULL);
	num(getspnam("root") != NULL);
	num(getsgnam("root") != NULL);
	num(getservbyport(htons(80), "tcp") != NULL);
	num(getservbyname("nosuch", NULL) != NULL);
	num(getprotobynumber(6) != NULL);
	num(getrpcbyname("nfs") != NULL);
	num(getrpcbynumber(100000) != NULL);
	num(getnetbyname("loopback") != NULL);
	num(getnetbyaddr(127, AF_INET) != NULL);
	num(getgrouplist("root", 0, groups, &n));
	num(innetgr("nosuch", "h", "u", "d"));
	num(setnetgrent("nosuch"));
	num(getnetgrent(&host, &user, &domain));
	endnetgrent();
	setusershell();
	for (int i = 0; i < 5; i++)
		str(getusershell());
	endusershell();
	f = setmntent("tour.d/mtab", "w+");
	num(addmntent(f, &(struct mntent){ "/dev/a b", "/mnt\t1", "ext4", "rw,uid=5", 1, 2 }));
	rewind(f);
	struct mntent *m = getmntent(f);
	str(m ? m->mnt_dir : NULL);
	str(m ? hasmntopt(m, "uid") : NULL);
	endmntent(f);
}

static void logins(void)
{
	struct utmp u = { .ut_type = USER_PROCESS,
		          .ut_pid = 77,
		          .ut_line = "tty9",
		          .ut_id = "9",
		          .ut_user = "me" },
		    *p;

	close(open("tour.d/utmp", O_CREAT | O_RDWR, 0600));
	num(utmpname("tour.d/utmp"));
	setutent();
	for (int i = 0; i < 5; i++) {
		snprintf(u.ut_id, sizeof(u.ut_id), "%d", i);
		snprintf(u.ut_line, sizeof(u.ut_line), "tty%d", i);
		num(pututline(&u) != NULL);
	}
	setutent();
	while ((p = getutent()))
		str(p->ut_line);
	setutent();
	num(getutid(&u) != NULL);
	num(getutline(&u) != NULL);
	endutent();
	updwtmp("tour.d/wtmp", &u);
	num(access("tour.d/wtmp", F_OK));
}

/* --- streams ---------------------------------------------------------------- */

static ssize_t cookie_read(void *c, char *buf, size_t n)
{
	n = n > 7 ? 7 : n;
	memset(buf, 'c', n);
	return (*(int *)c)++ < 3 ? (ssize_t)n : 0;
}

static ssize_t cookie_write(void *c, const char *buf, size_t n)
{
	add(buf, n);
	return (ssize_t)n;
}

static int cookie_seek(void *c, off64_t *pos, int whence)
{
	num(*pos + whence);
	return 0;
}

static void wide_streams(void)
{
	wchar_t line[100], *text = NULL;
	size_t len;
	fpos_t pos;
	FILE *f;

	setlocale(LC_ALL, "C.UTF-8");
	f = fopen("tour.d/wide", "w+");
	for (int i = 0; i < 300; i++)
		fwprintf(f, L"line %d \u20ac %ls\n", i, L"gr\u00fc\u00df \U0001f600");
	rewind(f);
	for (int i = 0; i < 50; i++)
		wstr(fgetws(line, 100, f));
	num(fgetpos(f, &pos));
	num(ftell(f));
	for (int i = 0; i < 12; i++)
		num((long)fgetwc(f));
	for (int i = 0; i < 9; i++)
		num((long)ungetwc(L'a' + i, f));
	num((long)fgetwc(f));
	num(fsetpos(f, &pos) + fseek(f, -30, SEEK_END) + fseek(f, 5, SEEK_CUR));
	num((long)getwc(f));
	num(fseek(f, 0, SEEK_SET) + fputws(L"over\u00e4", f) + (long)putwc(L'!', f));
	num(fflush(f) + ftell(f) + fwide(f, 0));
	rewind(f);
	num(fwscanf(f, L"%ls %d", line, &(int){ 0 }));
	f = freopen("tour.d/wide", "r,ccs=UTF-8", f);
	num(fgetws(line, 100, f) != NULL);
	fclose(f);
	f = open_wmemstream(&text, &len);
	for (int i = 0; i < 200; i++)
		fwprintf(f, L"%d,", i);
	num(fseek(f, 3, SEEK_SET) + (long)fputwc(L'X', f) + fseek(f, 0, SEEK_END) + fflush(f));
	fclose(f);
	wstr(text);
	free(text);
	setlocale(LC_ALL, "C");
}

static void narrow_streams(void)
{
	char buf[3000], *line = NULL;
	size_t room = 0;
	int reads = 0;
	FILE *f = fopencookie(
		&reads, "w+",
		(cookie_io_functions_t){ cookie_read, cookie_write, cookie_seek, NULL });

	num((long)fread(buf, 1, 100, f) + fputs("into a cookie", f) + fflush(f) +
	    fseek(f, 5, SEEK_SET));
	fclose(f);
	for (const char *const *mode =
	             (const char *const[]){ "r", "r+", "w", "w+", "a", "a+", "rb", "w+b", NULL };
	     *mode; mode++) {
		memset(buf, 'm', 50);
		strcpy(buf, "memory of some length");
		f = fmemopen(buf, 50, *mode);
		if (!f)
			continue;
		num(fprintf(f, "%d", 12345) + fflush(f) + fseek(f, 3, SEEK_SET) +
		    fseek(f, -2, SEEK_END) + ftell(f) + fgetc(f));
		clearerr(f);
		num(fputs("a long text that does not fit in, as it has more than there is room",
		          f));
		fclose(f);
		add(buf, 50);
	}
	f = fopen64("tour.d/narrow", "w+xe");
	setbuffer(f, buf, 700);
	for (int i = 0; i < 400; i++)
		num(fprintf(f, "%d:%s;", i, "field") + putw(i, f));
	rewind(f);
	while (getdelim(&line, &room, ';', f) > 0 && room < 100000)
		num((long)strlen(line));
	free(line);
	setlinebuf(f);
	rewind(f);
	for (int i = 0; i < 20; i++)
		num(ungetc('A' + i, f));
	num(fgetc(f) + getc_unlocked(f) + getw(f) + fseeko64(f, 100, SEEK_CUR) + ungetc('x', f) +
	    fseek(f, -1, SEEK_CUR));
	num(fwrite_unlocked("abc", 1, 3, f) + fputs_unlocked("def", f) + fputc_unlocked('g', f) +
	    fflush_unlocked(f));
	num(__fpending(f) + __flbf(f) + __freading(f) + __fwriting(f) +
	    __fsetlocking(f, FSETLOCKING_QUERY));
	__fpurge(f);
	_flushlbf();
	f = freopen64(NULL, "r", f);
	num(f && fgets_unlocked(buf, 50, f) != NULL);
	if (f)
		fclose(f);
	num(dprintf(open("tour.d/d", O_CREAT | O_WRONLY, 0600), "%s %d %f", "dprintf", 7, 2.5));
	f = popen("cat >tour.d/piped", "we");
	fputs("through a pipe\n", f);
	num(pclose(f));

	num(mkdtemp((char[]){ "tour.d/dirXXXXXX" }) != NULL);
	num(mkostemps((char[]){ "tour.d/fXXXXXX.c" }, 2, O_APPEND) > 0);
	num(fopen("nosuch/file", "r") == NULL && fopen("x", "q") == NULL);
}

/* --- characters ------------------------------------------------------------- */

static void convert(const char *to, const char *from)
{
	static const char text[] = "a\0\0\0b\0\0\0\xe4\0\0\0\xac\x20\0\0\0\xf6\x01\0z\0\0\0";
	static const char utf8[] = "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xff bad \xe2\x82";
	bool bytes =
		!strcmp(from, "UTF-8") || !strcmp(from, "ASCII") || !strcmp(from, "ISO-8859-1");
	iconv_t cd = iconv_open(to, from);

	num(cd == (iconv_t)-1 ? errno : 0);
	if (cd == (iconv_t)-1)
		return;
	for (size_t room = 1; room < 90; room = room * 2 + 1) {
		char out[100], *op = out, *ip = (char *)(bytes ? utf8 : text);
		size_t left = bytes ? sizeof(utf8) - 1 : sizeof(text) - 1, ol = room;

		iconv(cd, NULL, NULL, NULL, NULL);
		for (int tries = 0; left && tries < 60; tries++) {
			if (iconv(cd, &ip, &left, &op, &ol) == (size_t)-1) {
				num(errno);
				if (errno == EILSEQ) {
					ip++;
					left--;
				} else if (errno == EINVAL)
					break;
			}
			add(out, (size_t)(op - out));
			op = out;
			ol = room > 12 ? room : 12;
		}
		ol = sizeof(out);
		num((long)iconv(cd, NULL, NULL, &op, &ol));
	}
	iconv_close(cd);
}

static void multibyte(void)
{
	static const char text[] = "\xc3\xa4 b\xe2\x82\xac\xf0\x9f\x98\x80\xff";
	const char *p = text;
	const wchar_t *w;
	wchar_t wide[20] = { 0 };
	char16_t c16 = 0;
	char32_t c32 = 0;
	char out[40] = "";
	mbstate_t st = { 0 };
	size_t n;

	num(mblen(text, 4) + mbtowc(wide, text, 4) + wctomb(out, 0x20ac) +
	    (long)mbrlen(text, 1, &st) + (long)mbrlen(text + 1, 1, &st) + mbsinit(&st));
	num((long)mbsnrtowcs(wide, &p, 9, 20, &st));
	p = text;
	num((long)mbsrtowcs(NULL, &p, 0, &st));
	w = wide;
	num((long)wcsnrtombs(out, &w, 4, sizeof(out), &st));
	w = wide;
	num((long)wcsrtombs(NULL, &w, 0, &st));
	for (size_t i = 0; i + 1 < sizeof(text); i += n ? n : 1) {
		memset(&st, 0, sizeof(st));
		n = mbrtoc16(&c16, text + i, sizeof(text) - i, &st);
		num((long)n + c16);
		num((long)c16rtomb(out, c16, &st));
		memset(&st, 0, sizeof(st));
		n = mbrtoc32(&c32, text + i, sizeof(text) - i, &st);
		num((long)n + c32);
		memset(&st, 0, sizeof(st));
		num((long)c32rtomb(out, c32 & 0xffff, &st));
		if (n > 8)
			n = 1;
	}
	for (wint_t c = 0; c < 0x11000; c += 0x35)
		num(iswalpha(c) + wcwidth((wchar_t)c) + (long)towupper(c) +
		    !!iswctype(c, wctype("print")) + wctob(c));
}

static void characters(void)
{
	static const char *const sets[] = { "UTF-8",
		                            "ASCII",
		                            "ISO-8859-1",
		                            "INTERNAL",
		                            "UCS-4",
		                            "UCS-4LE",
		                            "UCS-4BE",
		                            "UCS-2",
		                            "UNICODELITTLE",
		                            "UNICODEBIG",
		                            "WCHAR_T",
		                            "ASCII//TRANSLIT",
		                            "UTF-8//IGNORE",
		                            "UTF-16",
		                            "UTF-32",
		                            "NOSUCH",
		                            "ISO-8859-1//TRANSLIT//IGNORE",
		                            "ucs4//",
		                            "" };
	static const nl_item items[] = { CODESET, RADIXCHAR, THOUSEP, D_T_FMT,  D_FMT, T_FMT,
		                         DAY_3,   MON_12,    AM_STR,  CRNCYSTR, ERA,   YESEXPR };
	locale_t l;

	for (size_t i = 0; i < COUNT(sets); i++)
		for (size_t k = 0; k < COUNT(sets); k++)
			if (!strchr(sets[k], '/') || k == 17)
				convert(sets[i], sets[k]);
	for (int utf8 = 0; utf8 < 2; utf8++) {
		str(setlocale(LC_ALL, utf8 ? "C.UTF-8" : "POSIX"));
		multibyte();
		for (size_t i = 0; i < COUNT(items); i++)
			str(nl_langinfo(items[i]));
	}
	str(setlocale(LC_NUMERIC, "C"));
	str(setlocale(LC_ALL, NULL));
	str(setlocale(LC_ALL, "LC_CTYPE=C;LC_NUMERIC=C.UTF-8;LC_TIME=C;LC_COLLATE=C;LC_MONETARY=C;"
	                      "LC_MESSAGES=C;LC_PAPER=C;LC_NAME=C;LC_ADDRESS=C;LC_TELEPHONE=C;LC_"
	                      "MEASUREMENT=C;LC_IDENTIFICATION=C"));
	str(setlocale(LC_ALL, "nosuch"));
	str(setlocale(LC_ALL, "de_DE.UTF-8@euro"));
	l = newlocale(LC_CTYPE_MASK | LC_TIME_MASK, "C.UTF-8", NULL);
	l = newlocale(LC_NUMERIC_MASK, "C", l);
	num(newlocale(LC_ALL_MASK, "nosuch", NULL) == NULL);
	str(nl_langinfo_l(CODESET, l));
	freelocale(l);
	setlocale(LC_ALL, "C");
}

/* --- threads ---------------------------------------------------------------- */

static const struct timespec past = { 1, 0 };

static void lock_kinds(pthread_mutex_t *m)
{
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	num(pthread_mutex_lock(m));
	num(pthread_mutex_trylock(m));
	num(pthread_mutex_unlock(m));
	num(pthread_mutex_timedlock(m, &past));
	num(pthread_cond_timedwait(&c, m, &past));
	num(pthread_cond_clockwait(&c, m, CLOCK_MONOTONIC, &past));
	num(pthread_mutex_unlock(m));
	num(pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &past));
	num(pthread_mutex_unlock(m));
	while (!pthread_mutex_unlock(m))
		;
}

static void *take_and_end(void *m)
{
	pthread_mutex_lock(m);
	return NULL;
}

static void *try_it(void *arg)
{
	pthread_mutex_t *m = arg;
	long ret = pthread_mutex_trylock(m);

	ret = ret * 1000 + pthread_mutex_timedlock(m, &past);
	return (void *)(ret * 1000 + pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &past));
}

static void mutexes(void)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
		                     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
	static const int protocols[] = { PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT };
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	pthread_t t;
	void *ret;

	for (int i = 0; i < 32; i++) {
		pthread_mutexattr_init(&a);
		num(pthread_mutexattr_settype(&a, types[i % 4]) +
		    pthread_mutexattr_setprotocol(&a, protocols[i / 4 % 2]) +
		    pthread_mutexattr_setrobust(&a, i / 8 % 2) +
		    pthread_mutexattr_setpshared(&a, i / 16));
		num(pthread_mutex_init(&m, &a));
		if (types[i % 4] != PTHREAD_MUTEX_NORMAL &&
		    types[i % 4] != PTHREAD_MUTEX_ADAPTIVE_NP)
			lock_kinds(&m);
		num(pthread_mutex_lock(&m));
		pthread_create(&t, NULL, try_it, &m);
		pthread_join(t, &ret);
		num((long)ret);
		num(pthread_mutex_unlock(&m));
		if (i / 8 % 2) {
			pthread_create(&t, NULL, take_and_end, &m);
			pthread_join(t, NULL);
			num(pthread_mutex_lock(&m));
			num(pthread_mutex_consistent(&m) + pthread_mutex_unlock(&m));
			pthread_create(&t, NULL, take_and_end, &m);
			pthread_join(t, NULL);
			num(pthread_mutex_trylock(&m));
			num(pthread_mutex_unlock(&m));
			num(pthread_mutex_trylock(&m));
		}
		pthread_mutex_destroy(&m);
		pthread_mutexattr_destroy(&a);
	}
}

static void *read_or_write(void *arg)
{
	pthread_rwlock_t *l = arg;
	long ret = 0;

	ret += pthread_rwlock_tryrdlock(l) ? 1 : (pthread_rwlock_unlock(l), 0);
	ret += pthread_rwlock_trywrlock(l) ? 2 : (pthread_rwlock_unlock(l), 0);
	ret += pthread_rwlock_timedrdlock(l, &past) ? 4 : (pthread_rwlock_unlock(l), 0);
	ret += pthread_rwlock_timedwrlock(l, &past) ? 8 : (pthread_rwlock_unlock(l), 0);
	ret += pthread_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &past)
	               ? 16
	               : (pthread_rwlock_unlock(l), 0);
	ret += pthread_rwlock_clockwrlock(l, CLOCK_MONOTONIC, &past)
	               ? 32
	               : (pthread_rwlock_unlock(l), 0);
	return (void *)ret;
}

static void rwlocks(void)
{
	pthread_rwlockattr_t a;
	pthread_rwlock_t l;
	pthread_t t;
	void *ret;

	for (int kind = 0; kind < 3; kind++) {
		pthread_rwlockattr_init(&a);
		num(pthread_rwlockattr_setkind_np(&a, kind) +
		    pthread_rwlockattr_setpshared(&a, kind % 2));
		pthread_rwlock_init(&l, &a);
		for (int held = 0; held < 3; held++) {
			num(held == 2 ? pthread_rwlock_wrlock(&l)
			    : held    ? pthread_rwlock_rdlock(&l)
			              : 0);
			pthread_create(&t, NULL, read_or_write, &l);
			pthread_join(t, &ret);
			num((long)ret);
			num(held == 2 ? pthread_rwlock_rdlock(&l) + pthread_rwlock_wrlock(&l) : 0);
			num(held ? pthread_rwlock_unlock(&l) : 0);
		}
		num(pthread_rwlock_destroy(&l) + pthread_rwlockattr_destroy(&a));
	}
}

static int c11(void *arg)
{
	tss_set(*(tss_t *)arg, arg);
	return 7;
}

static void attributes(void)
{
	pthread_attr_t a;
	struct sched_param sp;
	cpu_set_t cpus;
	void *stack;
	size_t size;
	int v, sum_of = 0;

	num(pthread_getattr_np(pthread_self(), &a));
	num(pthread_attr_getstack(&a, &stack, &size) + pthread_attr_getguardsize(&a, &size));
	pthread_attr_destroy(&a);
	pthread_attr_init(&a);
	sum_of += pthread_attr_setdetachstate(&a, PTHREAD_CREATE_JOINABLE) +
	          pthread_attr_getdetachstate(&a, &v) + v;
	sum_of += pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED) +
	          pthread_attr_getinheritsched(&a, &v) + v;
	sum_of += pthread_attr_setschedpolicy(&a, SCHED_OTHER) +
	          pthread_attr_getschedpolicy(&a, &v) + v;
	sum_of +=
		pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM) + pthread_attr_getscope(&a, &v) + v;
	sum_of += pthread_attr_getschedparam(&a, &sp) + pthread_attr_setschedparam(&a, &sp);
	sum_of += pthread_attr_setguardsize(&a, 8192) + pthread_attr_setstacksize(&a, 1 << 20);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sum_of += pthread_attr_setaffinity_np(&a, sizeof(cpus), &cpus) +
	          pthread_attr_getaffinity_np(&a, sizeof(cpus), &cpus);
	sum_of += pthread_getschedparam(pthread_self(), &v, &sp) +
	          pthread_setschedparam(pthread_self(), v, &sp);
	sum_of += pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus) +
	          pthread_getconcurrency();
	num(sum_of);
	pthread_attr_destroy(&a);
}

static void *sleeps(void *arg)
{
	sem_wait(arg);
	return arg;
}

static void locks(void)
{
	tss_t tss;
	thrd_t th;
	mtx_t mtx;
	cnd_t cnd;
	pthread_t t;
	sem_t sem, *named;
	char name[40];
	void *ret;
	int res;

	mutexes();
	rwlocks();
	attributes();
	num(tss_create(&tss, NULL) + thrd_create(&th, c11, &tss) + thrd_join(th, &res) + res);
	tss_delete(tss);
	num(mtx_init(&mtx, mtx_recursive | mtx_timed) + mtx_lock(&mtx) + mtx_trylock(&mtx) +
	    mtx_timedlock(&mtx, &past) + cnd_init(&cnd) + cnd_timedwait(&cnd, &mtx, &past) +
	    mtx_unlock(&mtx));
	cnd_destroy(&cnd);
	thrd_sleep(&(struct timespec){ 0, 10 }, NULL);
	thrd_yield();
	snprintf(name, sizeof(name), "/tour-%d", getpid());
	named = sem_open(name, O_CREAT | O_EXCL, 0600, 2);
	num(named != SEM_FAILED && sem_open(name, 0) == named);
	num(sem_close(named) + sem_close(named) + sem_unlink(name) +
	    (sem_open(name, 0) == SEM_FAILED));
	sem_init(&sem, 0, 0);
	pthread_create(&t, NULL, sleeps, &sem);
	num(pthread_tryjoin_np(t, &ret));
	num(pthread_timedjoin_np(t, &ret, &past));
	num(pthread_clockjoin_np(t, &ret, CLOCK_MONOTONIC, &past));
	sem_post(&sem);
	num(pthread_join(t, &ret) + (ret == &sem));
	num(sem_clockwait(&sem, CLOCK_MONOTONIC, &past) + sem_getvalue(&sem, &res) + res);
}

/* --- the rest ---------------------------------------------------------------- */

static void terminals(void)
{
	struct termios tio;
	struct winsize ws = { 24, 80, 0, 0 };
	char name[64];
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, &ws)) {
		num(errno);
		return;
	}
	num(ttyname_r(slave, name, sizeof(name)) + isatty(slave) + tcgetattr(slave, &tio));
	cfmakeraw(&tio);
	num(cfsetspeed(&tio, B9600) + cfsetspeed(&tio, 115200) + (long)cfgetospeed(&tio) +
	    cfsetispeed(&tio, B0));
	for (int act = 0; act < 4; act++)
		num(tcsetattr(slave, act, &tio));
	num(tcflow(slave, TCOON) + tcflush(slave, TCIOFLUSH) + tcsendbreak(slave, 0) * 0);
	num(ptsname_r(master, name, sizeof(name)) + grantpt(master) + unlockpt(master));
	num(ttyname(slave) != NULL);
	close(master);
	close(slave);
}

static void limits(void)
{
	char buf[300];
	long total = 0;

	for (int i = -1; i < 260; i++)
		total += sysconf(i) & 1;
	for (int i = 0; i < 1300; i++)
		total += confstr(i, buf, sizeof(buf)) > 1;
	for (int i = 0; i < 25; i++)
		total += (pathconf("tour.d", i) > 0) + (fpathconf(1, i) > 0);
	num(total * 0);
}

static void errors(void)
{
	void *trace[20];
	siginfo_t si = { .si_signo = SIGSEGV, .si_code = 1 };

	for (int s = 1; s < 64; s += 3) {
		si.si_signo = s;
		si.si_code = s % 7 - 2;
		psiginfo(&si, "signal");
		psignal(s, "plain");
	}
	num(backtrace(trace, 20) > 1);
	free(backtrace_symbols(trace, 2));
	num(fmtmsg(MM_PRINT, "tour:part", MM_WARNING, "what", "do this", "tag:1"));
	num(addseverity(7, "OWN"));
	num(fmtmsg(MM_PRINT, "tour:part", 7, "what", MM_NULLACT, MM_NULLTAG));
	num(getloadavg((double[3]){ 0 }, 3));
	num(get_nprocs() > 0);
	num(ftok("tour.d", 5) != -1);
	num(getentropy((char[8]){ 0 }, 8));
	num(arc4random_uniform(1));
	num(if_nametoindex("lo") > 0);
	struct if_nameindex *ni = if_nameindex();
	num(ni != NULL);
	if_freenameindex(ni);
}

static void heap(void)
{
	char *text = NULL, *p[64] = { NULL };
	size_t len;
	FILE *f;

	for (int i = 0; i < 2000; i++) {
		size_t k = (size_t)i * 37 % 64;

		p[k] = realloc(p[k], (size_t)((i * 7919) % 9000 + (i % 97 ? 0 : 300000)));
		if (i % 5 == 0) {
			free(p[k]);
			p[k] = i % 2 ? memalign(1u << (i % 13 + 4), (size_t)i % 3000)
			             : calloc(3, (size_t)i);
		}
	}
	for (int i = 0; i < 64; i++)
		free(p[i]);
	f = open_memstream(&text, &len);
	num(malloc_info(0, f));
	fclose(f);
	num(len > 100);
	free(text);
	num(malloc_trim(0) * 0 + mallopt(M_MXFAST, 80) + mallopt(M_ARENA_TEST, 2) +
	    mallopt(M_TOP_PAD, 65536));
	num(mallinfo().arena * 0);
}

static void leave_nothing(void)
{
	num(system("rm -rf tour.d"));
}

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} parts[] = {
		{ "scanf", scans_of_all_kinds },
		{ "printf", prints_of_all_kinds },
		{ "numbers", numbers },
		{ "dates", dates },
		{ "words", words },
		{ "trees", trees },
		{ "messages", messages },
		{ "argp", argp_tour },
		{ "getopt", getopt_tour },
		{ "names", names },
		{ "tables", tables },
		{ "logins", logins },
		{ "wide streams", wide_streams },
		{ "streams", narrow_streams },
		{ "characters", characters },
		{ "locks", locks },
		{ "terminals", terminals },
		{ "limits", limits },
		{ "errors", errors },
		{ "heap", heap },
		{ "end", leave_nothing },
	};
	char line[20];

	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	for (size_t i = 0; i < COUNT(parts); i++) {
		parts[i].fn();
		say(parts[i].name);
	}
	puts("END-OF-RUN");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	return 0;
}
