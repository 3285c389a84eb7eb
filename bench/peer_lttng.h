/* SPDX-License-Identifier: MIT */
/* The tracepoint of bench/peer.c, as LTTng-UST wants it described. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ukp_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/peer_lttng.h"

#if !defined(UKP_BENCH_PEER_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define UKP_BENCH_PEER_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(ukp_bench, hit, LTTNG_UST_TP_ARGS(long, a),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, a, a)))

#endif

#include <lttng/tracepoint-event.h>
