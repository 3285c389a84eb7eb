/* SPDX-License-Identifier: MIT */
/* One key, tested in three objects (tests/e2e/static-keys-work-across-objects.sh). */
#ifndef KEYS_H
#define KEYS_H

#include <ukprobes/jump_label.h>

#ifdef __cplusplus
extern "C" {
#endif

DECLARE_STATIC_KEY_FALSE(shared_key);
DECLARE_STATIC_KEY_TRUE(shared_on);

/* 1: shared_key, 2: shared_on, 4: in a method or template, 8: a constructor saw shared_key. */
int keys_a(void);
int keys_b(void);

#ifdef __cplusplus
}
#endif

#endif
