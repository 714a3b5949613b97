// SPDX-License-Identifier: Apache-2.0
/*
 * store_span - the store's counts, edges and activity span of days by span of days, as they are
 * kept: for whoever merges databases, or compares one period with another.
 */
#ifndef MP_STORE_SPAN_H
#define MP_STORE_SPAN_H

#include "libprof/store.h"

/* Days since 1970 (UTC), both included. */
struct mp_span {
	int64_t first_day, last_day;
	bool exact; /* where counts or edges are listed or added: they were counted, not sampled */
};

/* Return: 0, -EINVAL it is none. */
int mp_span_check(const struct mp_span *span, struct mp_err *err);

/* What the module's counts are kept in, in order. Ownership: free(*@out). */
int mp_store_list_count_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			      size_t *nr, struct mp_err *err);
int mp_store_list_edge_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err);

/* As mp_store_read_counts() and mp_store_read_edges(): what was kept in days that all lie in
 * @span. What is kept together with other days cannot be told apart, and is left out. */
int mp_store_read_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			     struct mp_ip_count **out, size_t *nr, struct mp_err *err);
int mp_store_read_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_edge_count **out, size_t *nr, struct mp_err *err);

/*
 * As mp_store_add_counts() and mp_store_add_edges(), for all days of @span together, as samples or as
 * exact counts. Days that are kept and overlap with it are one with it from now on: the sums stay
 * right, a period gets coarser.
 */
int mp_store_add_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    const struct mp_ip_count *counts, size_t nr, struct mp_err *err);
int mp_store_add_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_edge_count *edges, size_t nr, struct mp_err *err);

struct mp_activity_span {
	int64_t module;
	struct mp_span span;
	struct mp_activity activity;
};
/* Every one, in order of module and days. Ownership: free(*@out). */
int mp_store_list_activity_spans(struct mp_store *store, struct mp_activity_span **out, size_t *nr,
				 struct mp_err *err);
int mp_store_add_activity_span(struct mp_store *store, int64_t program_module,
			       const struct mp_span *span, const struct mp_activity *delta,
			       struct mp_err *err);

#endif
