/* SPDX-License-Identifier: MIT */
/* Static branches of this process, as other parts of the library see them. */
#ifndef UKP_LIB_LABELS_H
#define UKP_LIB_LABELS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether one has a byte in [start, end], end included. */
bool labels_reserved(uint64_t start, uint64_t end);

/* One less, if others remain: no code changes. */
struct static_key;
bool label_dec_not_one(struct static_key *key);

#endif
