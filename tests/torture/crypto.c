/* SPDX-License-Identifier: MIT */
/*
 * A user of libcrypto: every digest, cipher, MAC and KDF that it offers, keys,
 * signatures, numbers, encodings, certificates; says what came out where that is
 * the same each time, and whether it verified where it isn't.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/dh.h>
#include <openssl/dsa.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/objects.h>
#include <openssl/ocsp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/pkcs7.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ts.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sum = 0xcbf29ce484222325;
static unsigned char data[3000], out[40000], iv[64], key[128];
static const size_t sizes[] = { 0, 1, 15, 16, 63, 64, 127, 255, 1000, 3000 };

#define NR(a) (sizeof(a) / sizeof(*(a)))

static void add(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const unsigned char *)p)[i]) * 0x100000001b3;
}

static void say(const char *what)
{
	printf("%s %016llx\n", what, (unsigned long long)sum);
	fflush(stdout);
	ERR_clear_error();
}

static void digest(EVP_MD *md, void *arg)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	unsigned char got[EVP_MAX_MD_SIZE];
	unsigned int n;

	for (size_t i = 0; i < NR(sizes); i++) {
		n = 0;
		if (EVP_DigestInit_ex2(c, md, NULL) && EVP_DigestUpdate(c, data, sizes[i]) &&
		    EVP_DigestUpdate(c, data, sizes[i] / 3))
			EVP_MD_get_flags(md) & EVP_MD_FLAG_XOF ? EVP_DigestFinalXOF(c, got, n = 40)
							       : EVP_DigestFinal_ex(c, got, &n);
		add(got, n);
	}
	EVP_MD_CTX_free(c);
}

static void cipher(EVP_CIPHER *ci, void *arg)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	static unsigned char back[8000];
	unsigned char tag[16];
	int n, m, mode = EVP_CIPHER_get_mode(ci);
	const char *name = EVP_CIPHER_get0_name(ci);

	for (size_t i = 1; i < NR(sizes) && !strstr(name, "WRAP"); i++) {
		int len = (int)sizes[i] & ~15;

		n = m = 0;
		if (!len || !EVP_EncryptInit_ex2(c, ci, key, iv, NULL))
			continue;
		if (mode == EVP_CIPH_CCM_MODE)
			EVP_EncryptUpdate(c, NULL, &n, NULL, len);
		if (EVP_CIPHER_get_flags(ci) & EVP_CIPH_FLAG_AEAD_CIPHER)
			EVP_EncryptUpdate(c, NULL, &n, data, 20);
		if (!EVP_EncryptUpdate(c, out, &n, data, len) ||
		    !EVP_EncryptFinal_ex(c, out + n, &m))
			continue;
		add(out, n + m);
		if (EVP_CIPHER_get_flags(ci) & EVP_CIPH_FLAG_AEAD_CIPHER &&
		    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, tag) > 0)
			add(tag, 16);
		EVP_CIPHER_CTX_reset(c);
		if (EVP_DecryptInit_ex2(c, ci, key, iv, NULL) &&
		    !(EVP_CIPHER_get_flags(ci) & EVP_CIPH_FLAG_AEAD_CIPHER)) {
			len = n + m;
			n = m = 0;
			if (EVP_DecryptUpdate(c, back, &n, out, len) &&
			    EVP_DecryptFinal_ex(c, back + n, &m))
				add(back, n + m);
		}
		EVP_CIPHER_CTX_reset(c);
	}
	EVP_CIPHER_CTX_free(c);
}

static void mac(EVP_MAC *m, void *arg)
{
	const char *name = EVP_MAC_get0_name(m);
	OSSL_PARAM p[3] = { OSSL_PARAM_END, OSSL_PARAM_END, OSSL_PARAM_END };
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(m);
	size_t n = 0;

	if (!strcmp(name, "CMAC") || !strcmp(name, "GMAC"))
		p[0] = OSSL_PARAM_construct_utf8_string(
			"cipher", !strcmp(name, "CMAC") ? "AES-128-CBC" : "AES-128-GCM", 0);
	if (!strcmp(name, "GMAC"))
		p[1] = OSSL_PARAM_construct_octet_string("iv", iv, 12);
	if (!strcmp(name, "HMAC"))
		p[0] = OSSL_PARAM_construct_utf8_string("digest", "SHA384", 0);
	for (size_t i = 0; i < NR(sizes); i++)
		for (int k = 16; k <= 32; k += 16)
			if (EVP_MAC_init(c, key, k, p) && EVP_MAC_update(c, data, sizes[i]) &&
			    EVP_MAC_final(c, out, &n, 64))
				add(out, n);
	EVP_MAC_CTX_free(c);
}

static void kdf(EVP_KDF *k, void *arg)
{
	EVP_KDF_CTX *c = EVP_KDF_CTX_new(k);
	unsigned int iter = 20, mem = 16;
	uint64_t n = 16;
	int id = 1;
	OSSL_PARAM p[] = {
		OSSL_PARAM_construct_utf8_string("digest", "SHA256", 0),
		OSSL_PARAM_construct_octet_string("key", key, 32),
		OSSL_PARAM_construct_octet_string("secret", key, 32),
		OSSL_PARAM_construct_octet_string("pass", key, 16),
		OSSL_PARAM_construct_octet_string("salt", iv, 16),
		OSSL_PARAM_construct_octet_string("info", data, 20),
		OSSL_PARAM_construct_octet_string("seed", data, 20),
		OSSL_PARAM_construct_octet_string("xcghash", data, 20),
		OSSL_PARAM_construct_octet_string("session_id", data, 20),
		OSSL_PARAM_construct_utf8_string("type", "A", 0),
		OSSL_PARAM_construct_utf8_string("mac", "HMAC", 0),
		OSSL_PARAM_construct_uint("iter", &iter),
		OSSL_PARAM_construct_uint64("n", &n),
		OSSL_PARAM_construct_uint("r", &mem),
		OSSL_PARAM_construct_uint("p", &mem),
		OSSL_PARAM_construct_int("id", &id),
		OSSL_PARAM_construct_end(),
	};

	memset(out, 0, 48);
	if (EVP_KDF_derive(c, out, 48, p) > 0)
		add(out, 48);
	EVP_KDF_CTX_free(c);
}

static void use_key(EVP_PKEY *k, const char *md, int same)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	size_t n = sizeof(out);
	BIO *b = BIO_new(BIO_s_mem());
	char *text;
	int ok;

	ok = EVP_DigestSignInit_ex(c, NULL, md, NULL, NULL, k, NULL) > 0 &&
	     EVP_DigestSign(c, out, &n, data, 100) > 0;
	if (ok && same)
		add(out, n);
	EVP_MD_CTX_reset(c);
	ok = ok && EVP_DigestVerifyInit_ex(c, NULL, md, NULL, NULL, k, NULL) > 0;
	printf("  signed %d", ok && EVP_DigestVerify(c, out, n, data, 100) == 1);
	EVP_MD_CTX_reset(c);
	out[n / 2] ^= 1;
	if (ok && EVP_DigestVerifyInit_ex(c, NULL, md, NULL, NULL, k, NULL) > 0)
		printf(" forged %d", EVP_DigestVerify(c, out, n, data, 100) == 1);
	ok = PEM_write_bio_PrivateKey(b, k, EVP_aes_256_cbc(), NULL, 0, NULL, "pass");
	EVP_PKEY *again = PEM_read_bio_PrivateKey(b, NULL, NULL, "pass");
	printf(" same %d", again && EVP_PKEY_eq(k, again));
	ok = PEM_write_bio_PUBKEY(b, k) && i2d_PrivateKey_bio(b, k) > 0;
	printf(" public %d",
	       EVP_PKEY_print_public(b, k, 1, NULL) && EVP_PKEY_print_private(b, k, 1, NULL) && ok);
	printf(" %ld bits\n", (long)EVP_PKEY_get_bits(k) + (BIO_get_mem_data(b, &text) == 0));
	EVP_PKEY_free(again);
	BIO_free(b);
	EVP_MD_CTX_free(c);
}

static void agree(EVP_PKEY *k)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(k, NULL);
	size_t n = 200;

	if (c && EVP_PKEY_derive_init(c) > 0 && EVP_PKEY_derive_set_peer(c, k) > 0)
		printf("  derived %d\n", EVP_PKEY_derive(c, out, &n) > 0);
	EVP_PKEY_CTX_free(c);
}

static void keys(void)
{
	static const char *const curves[] = { "P-256",     "P-384",     "P-521",
		                              "secp256k1", "P-224",     "brainpoolP256r1",
		                              "sect283k1", "secp112r1", NULL };
	EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(k, NULL);
	unsigned char *secret = out + 1000;
	size_t n = 1000, m = 1000;

	puts("RSA");
	use_key(k, "SHA256", 0);
	use_key(k, "SHA3-224", 0);
	for (int pad = RSA_PKCS1_PADDING; pad <= RSA_PKCS1_OAEP_PADDING; pad++) {
		n = m = 1000;
		if (pad != RSA_NO_PADDING && pad != 2 && EVP_PKEY_encrypt_init(c) > 0 &&
		    EVP_PKEY_CTX_set_rsa_padding(c, pad) > 0 &&
		    EVP_PKEY_encrypt(c, secret, &n, data, 40) > 0 && EVP_PKEY_decrypt_init(c) > 0 &&
		    EVP_PKEY_CTX_set_rsa_padding(c, pad) > 0)
			printf("  opened %d\n", EVP_PKEY_decrypt(c, out, &m, secret, n) > 0 &&
			                                m == 40 && !memcmp(out, data, 40));
	}
	EVP_PKEY_CTX_free(c);
	EVP_PKEY_free(k);
	for (int i = 0; curves[i]; i++) {
		puts(curves[i]);
		k = EVP_PKEY_Q_keygen(NULL, NULL, "EC", curves[i]);
		if (!k)
			continue;
		use_key(k, "SHA256", 0);
		agree(k);
		EVP_PKEY_free(k);
	}
	for (int type = 0; type < 5; type++) {
		static const int types[] = { EVP_PKEY_ED25519, EVP_PKEY_ED448, EVP_PKEY_X25519,
			                     EVP_PKEY_X448, EVP_PKEY_POLY1305 };

		k = EVP_PKEY_new_raw_private_key(types[type], NULL, key,
		                                 type == 1   ? 57
		                                 : type == 3 ? 56
		                                             : 32);
		printf("raw %d\n", type);
		if (!k)
			continue;
		type < 2 ? use_key(k, NULL, 1) : agree(k);
		EVP_PKEY_free(k);
	}
	k = EVP_PKEY_Q_keygen(NULL, NULL, "SM2");
	if (k)
		use_key(k, "SM3", 0);
	EVP_PKEY_free(k);
	c = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
	OSSL_PARAM p[] = { OSSL_PARAM_construct_utf8_string("group", "ffdhe2048", 0),
		           OSSL_PARAM_construct_end() };
	k = NULL;
	if (EVP_PKEY_keygen_init(c) > 0 && EVP_PKEY_CTX_set_params(c, p) > 0 &&
	    EVP_PKEY_generate(c, &k) > 0)
		agree(k);
	EVP_PKEY_free(k);
	EVP_PKEY_CTX_free(c);
}

static void numbers(void)
{
	BN_CTX *x = BN_CTX_new();
	BIGNUM *a = NULL, *b = NULL, *m = NULL, *r = BN_new(), *q = BN_new();

	BN_dec2bn(&a, "123456789012345678901234567890123456789012345678901234567890");
	BN_hex2bn(&b, "fedcba9876543210fedcba9876543210");
	BN_dec2bn(&m, "170141183460469231731687303715884105727");
	for (int i = 0; i < 6; i++) {
		char *s;

		BN_mul(r, a, b, x);
		BN_sqr(a, b, x);
		BN_div(q, r, r, m, x);
		BN_mod_exp(b, r, q, m, x);
		BN_mod_inverse(q, b, m, x);
		BN_gcd(r, a, b, x);
		BN_add(b, b, q);
		BN_sub(a, a, r);
		BN_lshift(r, a, 77);
		BN_rshift(a, r, 33);
		BN_mod_sqrt(r, b, m, x);
		BN_GF2m_mod_mul(q, a, b, m, x);
		BN_kronecker(a, m, x);
		BN_mod_lshift(r, r, 5, m, x);
		s = BN_bn2dec(a);
		add(s, strlen(s));
		OPENSSL_free(s);
		s = BN_bn2hex(b);
		add(s, strlen(s));
		OPENSSL_free(s);
		add(out, BN_bn2bin(q, out));
	}
	printf("  primes %d %d\n", BN_check_prime(m, x, NULL), BN_check_prime(b, x, NULL));
	BN_generate_prime_ex(r, 128, 1, NULL, NULL, NULL);
	BN_rand_range(q, m);
	BN_free(a);
	BN_free(b);
	BN_free(m);
	BN_free(r);
	BN_free(q);
	BN_CTX_free(x);
}

static X509 *certificate(EVP_PKEY *k)
{
	static const char *const ext[][2] = {
		{ "basicConstraints", "critical,CA:TRUE,pathlen:2" },
		{ "keyUsage", "keyCertSign,digitalSignature,cRLSign" },
		{ "extendedKeyUsage", "serverAuth,emailProtection,1.2.3.4" },
		{ "subjectAltName",
		  "DNS:example.org,IP:10.0.0.1,email:a@b.c,URI:http://x/,dirName:none" },
		{ "subjectKeyIdentifier", "hash" },
		{ "certificatePolicies", "1.2.3.4" },
		{ "nameConstraints", "permitted;DNS:.org" },
		{ "authorityInfoAccess", "OCSP;URI:http://o/" },
		{ "crlDistributionPoints", "URI:http://c/" },
		{ "nsComment", "comment" }
	};
	X509 *x = X509_new();
	X509_NAME *n = X509_get_subject_name(x);
	X509V3_CTX c;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 12345);
	ASN1_TIME_set_string(X509_getm_notBefore(x), "20200101000000Z");
	ASN1_TIME_set_string(X509_getm_notAfter(x), "20991231235959Z");
	X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_UTF8, (const unsigned char *)"t\xc3\xb6rture",
	                           -1, -1, 0);
	X509_NAME_add_entry_by_txt(n, "O", MBSTRING_ASC, (const unsigned char *)"org", -1, -1, 0);
	X509_set_issuer_name(x, n);
	X509_set_pubkey(x, k);
	X509V3_set_ctx(&c, x, x, NULL, NULL, 0);
	for (size_t i = 0; i < NR(ext); i++) {
		X509_EXTENSION *e = X509V3_EXT_conf(NULL, &c, ext[i][0], ext[i][1]);

		if (e)
			X509_add_ext(x, e, -1);
		X509_EXTENSION_free(e);
	}
	X509_sign(x, k, NULL);
	return x;
}

static void certificates(void)
{
	EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, 32),
		 *rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024), *k2 = NULL;
	X509 *x = certificate(k), *y = certificate(rsa), *z = NULL;
	BIO *b = BIO_new(BIO_s_mem()), *in = BIO_new_mem_buf(data, 500), *res;
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *sc = X509_STORE_CTX_new();
	STACK_OF(X509) *stack = sk_X509_new_null(), *ca = NULL;
	char *text;
	long n;

	X509_print_ex(b, x, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB, 0);
	PEM_write_bio_X509(b, x);
	n = BIO_get_mem_data(b, &text);
	add(text, n);
	z = PEM_read_bio_X509(b, NULL, NULL, NULL);
	printf("  same %d self %d host %d ip %d mail %d purpose %d\n", z && !X509_cmp(x, z),
	       X509_verify(x, k), X509_check_host(x, "example.org", 0, 0, NULL),
	       X509_check_ip_asc(x, "10.0.0.1", 0), X509_check_email(x, "a@b.c", 0, 0),
	       X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 1));
	X509_STORE_add_cert(store, x);
	X509_STORE_add_cert(store, y);
	X509_STORE_CTX_init(sc, store, y, NULL);
	printf("  verified %d %s\n", X509_verify_cert(sc),
	       X509_verify_cert_error_string(X509_STORE_CTX_get_error(sc)));
	X509_REQ *req = X509_to_X509_REQ(y, rsa, EVP_sha256());
	printf("  request %d\n", X509_REQ_verify(req, rsa) && X509_REQ_print(b, req));
	X509_CRL *crl = X509_CRL_new();
	X509_REVOKED *rev = X509_REVOKED_new();
	X509_REVOKED_set_serialNumber(rev, X509_get_serialNumber(x));
	X509_REVOKED_set_revocationDate(rev, X509_getm_notBefore(x));
	X509_CRL_add0_revoked(crl, rev);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(x));
	X509_CRL_set1_lastUpdate(crl, X509_getm_notBefore(x));
	X509_CRL_sort(crl);
	printf("  crl %d\n", X509_CRL_sign(crl, k, NULL) > 0 && X509_CRL_verify(crl, k) &&
	                             X509_CRL_print(b, crl));
	sk_X509_push(stack, y);
	CMS_ContentInfo *cms = CMS_sign(y, rsa, NULL, in, 0);
	res = BIO_new(BIO_s_mem());
	printf("  cms %d\n",
	       cms && CMS_verify(cms, NULL, store, NULL, res, CMS_NO_SIGNER_CERT_VERIFY));
	CMS_ContentInfo_free(cms);
	BIO_reset(in);
	cms = CMS_encrypt(stack, in, EVP_aes_128_cbc(), 0);
	printf("  cms opened %d\n",
	       cms && CMS_decrypt(cms, rsa, y, NULL, res, 0) && SMIME_write_CMS(b, cms, NULL, 0));
	CMS_ContentInfo_free(cms);
	BIO_reset(in);
	PKCS7 *p7 = PKCS7_sign(y, rsa, NULL, in, 0);
	printf("  pkcs7 %d\n", p7 && PKCS7_verify(p7, NULL, store, NULL, res, PKCS7_NOVERIFY) &&
	                               PEM_write_bio_PKCS7(b, p7));
	PKCS7_free(p7);
	PKCS12 *p12 = PKCS12_create("pass", "name", rsa, y, stack, 0, 0, 10, 10, 0);
	X509_free(z);
	z = NULL;
	printf("  pkcs12 %d\n",
	       p12 && PKCS12_parse(p12, "pass", &k2, &z, &ca) && EVP_PKEY_eq(k2, rsa));
	PKCS12_free(p12);
	OCSP_REQUEST *oc = OCSP_REQUEST_new();
	OCSP_request_add0_id(oc, OCSP_cert_to_id(NULL, y, x));
	printf("  ocsp %d\n", OCSP_REQUEST_print(b, oc, 0));
	OCSP_REQUEST_free(oc);
	for (const char *s = "-----BEGIN CERTIFICATE-----\nbad"; s; s = NULL) {
		BIO *bad = BIO_new_mem_buf(s, -1);

		printf("  bad %d\n", PEM_read_bio_X509(bad, NULL, NULL, NULL) == NULL);
		ERR_print_errors(b);
		BIO_free(bad);
	}
	n = BIO_get_mem_data(b, &text);
	ASN1_parse_dump(b, out, i2d_X509(x, (unsigned char *[]){ out }), 1, 1);
	EVP_PKEY_free(k);
	EVP_PKEY_free(k2);
	EVP_PKEY_free(rsa);
	BIO_free(b);
	BIO_free(in);
	BIO_free(res);
}

static void encodings(void)
{
	BIO *m = BIO_new(BIO_s_mem()), *b64 = BIO_push(BIO_new(BIO_f_base64()), m), *md, *ci;
	unsigned char buf[5000];
	CONF *conf = NCONF_new(NULL);
	int n;

	BIO_write(b64, data, 777);
	(void)BIO_flush(b64);
	n = BIO_read(b64, buf, 100);
	add(buf, n > 0 ? n : 0);
	EVP_EncodeBlock(buf, data, 300);
	add(buf, 400);
	n = EVP_DecodeBlock(out, buf, 400);
	add(out, n);
	BIO_free_all(b64);
	md = BIO_push(BIO_new(BIO_f_md()), BIO_new(BIO_s_null()));
	BIO_set_md(md, EVP_sha1());
	BIO_printf(md, "%s %d %5.2f %x %ld\n", "text", 5, 3.25, 255, 77l);
	BIO_free_all(md);
	ci = BIO_push(BIO_new(BIO_f_cipher()), BIO_new(BIO_s_mem()));
	BIO_set_cipher(ci, EVP_aes_128_cbc(), key, iv, 1);
	BIO_write(ci, data, 100);
	BIO_free_all(ci);
	m = BIO_new_mem_buf("[s]\na = 1\nb = $a\nc = \"q \\\" r\"\n[t]\nd=${s::a}\n", -1);
	printf("  conf %d %s\n", NCONF_load_bio(conf, m, NULL), NCONF_get_string(conf, "t", "d"));
	NCONF_free(conf);
	BIO_free(m);
	for (int nid = 1; nid < 1300; nid += 3) {
		char text[80];
		ASN1_OBJECT *o = OBJ_nid2obj(nid);

		if (o && OBJ_obj2txt(text, sizeof(text), o, 1) > 0)
			add(text, strlen(text));
		ERR_clear_error();
	}
	for (int e = 1; e < 60; e++) {
		const char *s = ERR_lib_error_string(ERR_PACK(e, 0, 1));

		add(s ? s : "", s ? strlen(s) : 0);
	}
	RAND_bytes(buf, 1000);
	RAND_priv_bytes(buf, 100);
	printf("  scrypt %d pbkdf2 %d\n", EVP_PBE_scrypt("p", 1, iv, 8, 16, 2, 1, 0, out, 64),
	       PKCS5_PBKDF2_HMAC("p", 1, iv, 8, 10, EVP_sha512(), 64, out + 64));
	add(out, 128);
}

int main(void)
{
	char line[20];

	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + i / 256 + 3);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)(i * 31 + 8);
	EVP_MD_do_all_provided(NULL, digest, NULL);
	say("digests");
	EVP_CIPHER_do_all_provided(NULL, cipher, NULL);
	say("ciphers");
	EVP_MAC_do_all_provided(NULL, mac, NULL);
	say("macs");
	EVP_KDF_do_all_provided(NULL, kdf, NULL);
	say("kdfs");
	numbers();
	say("numbers");
	encodings();
	say("encodings");
	keys();
	say("keys");
	certificates();
	say("certificates");
	puts("END-OF-RUN");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = 0;
	return (int)(sum & 63);
}
