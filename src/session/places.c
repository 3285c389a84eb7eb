/* SPDX-License-Identifier: MIT */
/* Definitions of many places, from the client's side. */
#include <stdlib.h>
#include <string.h>

#include "session/client.h"

void ukp_session_set_strict(struct ukp_session *s, bool strict)
{
	s->strict = strict;
}

const char *ukp_session_refused(struct ukp_session *s)
{
	struct proto_reply *r = malloc(sizeof(*r));

	s->refused[0] = 0;
	if (r && client_request(s, PROTO_REFUSED, 0, NULL, r, NULL) >= 0 && r->len)
		snprintf(s->refused, sizeof(s->refused), "%.*s", (int)r->len, r->data);
	free(r);
	return s->refused;
}
