// SPDX-License-Identifier: Apache-2.0
/*
 * store_span - counts and edges by spans of days; see store_span.h. store_series decides
 * how spans are kept and folded. Called by store_merge and by the daemon's reports.
 */
#include "libprof/store/store_span.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/store/store_series.h"

int mp_store_list_ip_count_spans(struct mp_store *store, int64_t module, struct mp_span **out,
				 size_t *nr, struct mp_err *err)
{
	return mp_series_list_spans(store, &mp_series_ip_counts, module, out, nr, err);
}

int mp_store_list_edge_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err)
{
	return mp_series_list_spans(store, &mp_series_edges, module, out, nr, err);
}

int mp_store_read_ip_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
				struct mp_ip_count **out, size_t *nr, struct mp_err *err)
{
	void *entries = NULL;
	int r = mp_series_read_span(store, &mp_series_ip_counts, module, span, &entries, nr, err);

	if (!r)
		*out = entries;
	return r;
}

int mp_store_read_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_edge_count **out, size_t *nr, struct mp_err *err)
{
	void *entries = NULL;
	int r = mp_series_read_span(store, &mp_series_edges, module, span, &entries, nr, err);

	if (!r)
		*out = entries;
	return r;
}

int mp_span_check(const struct mp_span *span, struct mp_err *err)
{
	if (span->first_day < 0 || span->first_day > span->last_day ||
	    span->last_day > INT64_MAX / MP_SECONDS_PER_DAY)
		return mp_err_set(err, EINVAL, "days %lld to %lld: no span of days",
				  (long long)span->first_day, (long long)span->last_day);
	return 0;
}

/* A single day needs no preparation: adding finds the span that holds it. */
static int prepare(struct mp_store *store, const struct mp_series *series, int64_t module,
		   const struct mp_span *span, struct mp_err *err)
{
	if (span->first_day == span->last_day)
		return 0;
	return mp_series_widen(store, series, module, span, err);
}

int mp_store_add_ip_count_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			       const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	bool began;
	int r = mp_span_check(span, err);

	if (r || !nr)
		return r;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = prepare(store, &mp_series_ip_counts, module, span, err);
	if (!r)
		r = mp_ip_counts_add(store, module, span->last_day * MP_SECONDS_PER_DAY,
				     span->exact, counts, nr, err);
	return mp_store_leave(store, began, r, err);
}

int mp_store_add_edge_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_edge_count *edges, size_t nr, struct mp_err *err)
{
	bool began;
	int r = mp_span_check(span, err);

	if (r || !nr)
		return r;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = prepare(store, &mp_series_edges, module, span, err);
	if (!r)
		r = mp_edges_add(store, module, span->last_day * MP_SECONDS_PER_DAY, span->exact,
				 edges, nr, err);
	return mp_store_leave(store, began, r, err);
}

/* *@exact becomes false if any wanted span holds samples; *@any becomes true if there is one. */
static int look_at_spans(struct mp_store *store, const struct mp_series *series, int64_t module,
			 int64_t since_s, bool *exact, bool *any, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr = 0;
	int r = mp_series_list_spans(store, series, module, &spans, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		if (!mp_day_wanted(spans[i].last_day, since_s))
			continue;
		*any = true;
		*exact &= spans[i].exact;
	}
	free(spans);
	return r;
}

int mp_store_is_exact(struct mp_store *store, int64_t module, int64_t since_s, bool *exact,
		      struct mp_err *err)
{
	bool all = true, any = false, began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = look_at_spans(store, &mp_series_ip_counts, module, since_s, &all, &any, err);
	/* Transfers alone, even exact ones, do not tell how often a block ran. */
	if (!r && any)
		r = look_at_spans(store, &mp_series_edges, module, since_s, &all, &any, err);
	*exact = all && any;
	return mp_store_leave(store, began, r, err);
}
