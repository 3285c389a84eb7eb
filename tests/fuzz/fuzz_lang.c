/* SPDX-License-Identifier: MIT */
/*
 * The definition parser under libFuzzer:
 *
 *	clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -Iinclude \
 *	      -Itests -o build/fuzz_lang tests/fuzz/fuzz_lang.c src/lang/[a-z]*.c src/base/err.c
 *	build/fuzz_lang -dict=tests/fuzz/lang.dict -max_len=512 -max_total_time=60
 */
#include <stdint.h>

#include "unit/lang/fake_sym.h"
#include "unit/lang/check_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *bad;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	bad = check_line(text);
	if (bad) {
		fprintf(stderr, "%s: '%s'\n", bad, text);
		abort();
	}
	free(text);
	return 0;
}
