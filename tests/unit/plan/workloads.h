/* SPDX-License-Identifier: MIT */
/* What a library is made to do, with a checksum over all that it answers. */
#ifndef TESTS_PLAN_WORKLOADS_H
#define TESTS_PLAN_WORKLOADS_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t work_sum;

static inline void work_add(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		work_sum = (work_sum ^ p[i]) * 0x100000001b3;
}

#define WORK_FN(handle, ret, name, ...) ret (*name)(__VA_ARGS__) = dlsym(handle, #name)

static inline void work_text(uint8_t *buf, size_t n)
{
	uint64_t x = 88172645463325252UL;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		buf[i] = (uint8_t)("etaoin shrdlu\n"[x % 14] + (i % 97 == 0 ? x >> 60 : 0));
	}
}

static inline void work_zlib(void *h)
{
	WORK_FN(h, int, compress2, uint8_t *, unsigned long *, const uint8_t *, unsigned long, int);
	WORK_FN(h, int, uncompress, uint8_t *, unsigned long *, const uint8_t *, unsigned long);
	WORK_FN(h, unsigned long, crc32, unsigned long, const uint8_t *, unsigned int);
	WORK_FN(h, unsigned long, adler32, unsigned long, const uint8_t *, unsigned int);
	WORK_FN(h, void *, gzopen, const char *, const char *);
	WORK_FN(h, int, gzwrite, void *, const void *, unsigned int);
	WORK_FN(h, int, gzread, void *, void *, unsigned int);
	WORK_FN(h, int, gzclose, void *);
	enum { N = 60000 };
	uint8_t *in = malloc(N), *out = malloc(2 * N), *back = malloc(N);
	char path[] = "/tmp/ukp-work-XXXXXX";
	int fd = mkstemp(path);
	void *gz;

	work_text(in, N);
	for (int level = 0; level <= 9; level++) {
		unsigned long n = 2 * N, m = N;

		compress2(out, &n, in, N, level);
		uncompress(back, &m, out, n);
		work_add(&n, sizeof(n));
		work_add(back, m);
		n = crc32(0, out, (unsigned int)n) ^ adler32(1, out, (unsigned int)n);
		work_add(&n, sizeof(n));
	}
	gz = gzopen(path, "wb9");
	gzwrite(gz, in, N);
	gzclose(gz);
	gz = gzopen(path, "rb");
	memset(back, 0, N);
	gzread(gz, back, N);
	gzclose(gz);
	work_add(back, N);
	close(fd);
	unlink(path);
	free(in);
	free(out);
	free(back);
}

static inline int work_row(void *arg, int n, char **values, char **names)
{
	for (int i = 0; i < n; i++)
		if (values[i])
			work_add(values[i], strlen(values[i]));
	return 0;
}

static inline void work_sqlite(void *h)
{
	static const char *const script[] = {
		"create table t(a integer primary key, b text, c real, d blob)",
		"create index i on t(b, c)",
		"with recursive n(x) as (select 1 union all select x + 1 from n where x < 4000) "
		"insert into t select x, printf('%05d-%s', x * 7919 % 4001, hex(x)), x / 7.0, "
		"zeroblob(x % 37) from n",
		"select count(*), sum(c), max(b), min(length(d)) from t",
		"select b, group_concat(a) from t group by substr(b, 1, 3) order by 1 desc limit "
		"50",
		"update t set c = c * 1.5, b = upper(b) || 'x' where a % 3 = 0",
		"delete from t where a % 11 = 4",
		"select * from t x join t y on x.a = y.a + 1 where x.b like '%1%' limit 300",
		"explain query plan select * from t where b > 'x' and c < 3",
		"create view v as select a, b, rank() over (order by c) r from t",
		"select sum(r), count(distinct b) from v where r % 5 = 1",
		"begin; insert into t(b) values ('z'); rollback",
		"select json_group_array(a) from (select a from t order by c desc limit 40)",
		"select date('2020-02-29', '+1 year'), strftime('%j', '2024-12-31'), abs(-3), "
		"round(2.567, 2), replace('aXbX', 'X', 'yy'), instr('hello', 'l'), quote('it''s')",
		"select syntax error from",
		"vacuum",
		"pragma integrity_check",
		"drop view v; drop table t",
	};
	WORK_FN(h, int, sqlite3_open, const char *, void **);
	WORK_FN(h, int, sqlite3_exec, void *, const char *, int (*)(void *, int, char **, char **),
	        void *, char **);
	WORK_FN(h, void, sqlite3_free, void *);
	WORK_FN(h, int, sqlite3_close, void *);
	void *db;

	sqlite3_open(":memory:", &db);
	for (size_t i = 0; i < sizeof(script) / sizeof(script[0]); i++) {
		char *message = NULL;
		int r = sqlite3_exec(db, script[i], work_row, NULL, &message);

		work_add(&r, sizeof(r));
		if (message)
			work_add(message, strlen(message));
		sqlite3_free(message);
	}
	sqlite3_close(db);
}

static inline void work_crypto(void *h)
{
	static const char *const digests[] = { "md5",      "sha1",       "sha256",    "sha512",
		                               "sha3-256", "blake2b512", "ripemd160", "sm3" };
	static const char *const ciphers[] = { "aes-128-cbc",      "aes-256-ctr",
		                               "aes-256-gcm",      "chacha20-poly1305",
		                               "camellia-192-cbc", "des-ede3-cbc",
		                               "aria-128-cbc" };
	WORK_FN(h, const void *, EVP_get_digestbyname, const char *);
	WORK_FN(h, int, EVP_Digest, const void *, size_t, uint8_t *, unsigned int *, const void *,
	        void *);
	WORK_FN(h, const void *, EVP_get_cipherbyname, const char *);
	WORK_FN(h, void *, EVP_CIPHER_CTX_new, void);
	WORK_FN(h, void, EVP_CIPHER_CTX_free, void *);
	WORK_FN(h, int, EVP_EncryptInit_ex, void *, const void *, void *, const uint8_t *,
	        const uint8_t *);
	WORK_FN(h, int, EVP_EncryptUpdate, void *, uint8_t *, int *, const uint8_t *, int);
	WORK_FN(h, int, EVP_EncryptFinal_ex, void *, uint8_t *, int *);
	WORK_FN(h, int, BN_hex2bn, void **, const char *);
	WORK_FN(h, char *, BN_bn2dec, const void *);
	WORK_FN(h, int, BN_mod_exp, void *, const void *, const void *, const void *, void *);
	WORK_FN(h, void *, BN_CTX_new, void);
	WORK_FN(h, int, PKCS5_PBKDF2_HMAC, const char *, int, const uint8_t *, int, int,
	        const void *, int, uint8_t *);
	enum { N = 20000 };
	uint8_t *in = malloc(N), *out = malloc(N + 64), md[64];
	void *base = NULL, *mod = NULL, *r = NULL;
	char *dec;

	work_text(in, N);
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
		const void *type = EVP_get_digestbyname(digests[i]);
		unsigned int n = 0;

		if (type && EVP_Digest(in, N, md, &n, type, NULL) == 1)
			work_add(md, n);
	}
	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
		const void *type = EVP_get_cipherbyname(ciphers[i]);
		void *ctx = EVP_CIPHER_CTX_new();
		int n = 0, m = 0;

		if (type && EVP_EncryptInit_ex(ctx, type, NULL, in, in + 64) == 1) {
			EVP_EncryptUpdate(ctx, out, &n, in, N);
			EVP_EncryptFinal_ex(ctx, out + n, &m);
			work_add(out, (size_t)(n + m));
		}
		EVP_CIPHER_CTX_free(ctx);
	}
	BN_hex2bn(&base, "123456789abcdef0fedcba9876543210deadbeef0123456789abcdef");
	BN_hex2bn(&mod, "f123456789abcdef0fedcba9876543210deadbeef0123456789abcdef7777777");
	BN_hex2bn(&r, "1");
	BN_mod_exp(r, base, mod, mod, BN_CTX_new());
	dec = BN_bn2dec(r);
	work_add(dec, strlen(dec));
	PKCS5_PBKDF2_HMAC("secret", 6, in, 16, 50, EVP_get_digestbyname("sha256"), 64, md);
	work_add(md, 64);
	free(in);
	free(out);
}

#endif
