/* SPDX-License-Identifier: MIT */
/* Text that its program may rewrite, where somebody has asked for it. */
#ifndef UKP_SESSION_LIVE_H
#define UKP_SESSION_LIVE_H

#include "patch/place.h"
#include "session/target.h"

/* Memory of t as it would be without us. */
struct place_live live_text(struct target *t);
/* Has c asked for such text, and is it that at addr? */
bool live_is_asked(const struct chan *c, uint64_t addr);
/* Can it be probed?  ret: at its return. */
int live_check(struct target *t, uint64_t addr, bool ret, int column, struct err *err);
/*
 * Before a probe is planted there: a site that was made for other code is forgotten.
 * -EBUSY: it has probes that were planted before the program changed the file's text.
 */
int live_ready(struct target *t, const struct probe *p, struct err *err);
/* The breakpoint in, if the code is as it was planned for; and out, if it is still ours. */
int live_arm(struct target *t, struct site *s, struct err *err);
void live_disarm(struct target *t, struct site *s);
/* Whatever was rewritten or unmapped is forgotten, and its probes' channels are told. */
void live_look(struct target *t);

#endif
