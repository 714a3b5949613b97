// SPDX-License-Identifier: Apache-2.0
/*
 * store_span - reads and adds counts, edges and activity by spans of days, as they are
 * kept. For merging databases and for comparing periods.
 */
#ifndef MP_STORE_SPAN_H
#define MP_STORE_SPAN_H

#include "libprof/store/store.h"

/* Days since 1970 (UTC), both included. */
struct mp_span {
	int64_t first_day, last_day;
	bool exact; /* counted, not sampled; for counts and edges that are listed or added */
};

/* Return: 0, -EINVAL (no valid span). */
int mp_span_check(const struct mp_span *span, struct mp_err *err);

/* The spans in which the module's counts are kept, in order. Ownership: free(*@out). */
int mp_store_list_ip_count_spans(struct mp_store *store, int64_t module, struct mp_span **out,
				 size_t *nr, struct mp_err *err);
int mp_store_list_edge_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err);

/*
 * As mp_store_read_ip_counts() and mp_store_read_edges(), for days in @span. Days that are
 * kept together with days outside of @span cannot be separated and are left out.
 */
int mp_store_read_ip_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
				struct mp_ip_count **out, size_t *nr, struct mp_err *err);
int mp_store_read_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_edge_count **out, size_t *nr, struct mp_err *err);

/*
 * As mp_store_add_ip_counts() and mp_store_add_edges(), for all days of @span together, as
 * samples or as exact counts. Existing spans that overlap become one with it: sums stay
 * right, but periods get coarser.
 */
int mp_store_add_ip_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			       const struct mp_ip_count *counts, size_t nr, struct mp_err *err);
int mp_store_add_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_edge_count *edges, size_t nr, struct mp_err *err);

struct mp_activity_span {
	int64_t module;
	struct mp_span span;
	struct mp_activity activity;
};
/* All spans, in order of module and days. Ownership: free(*@out). */
int mp_store_list_activity_spans(struct mp_store *store, struct mp_activity_span **out, size_t *nr,
				 struct mp_err *err);
int mp_store_add_activity_span(struct mp_store *store, int64_t program_module,
			       const struct mp_span *span, const struct mp_activity *delta,
			       struct mp_err *err);

#endif
