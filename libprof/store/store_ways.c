// SPDX-License-Identifier: Apache-2.0
/*
 * store_ways - ways of conditional branches; see store_ways.h. Decides how a way is written as an
 * edge; store_series decides how edges are kept.
 */
#include "libprof/store/store_ways.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/store/store_series.h"

/* An edge from the branch to itself: all its ways as count, those that fell through as mispredicted. */
static int to_entries(const struct mp_store *store, const struct mp_way_count *ways, size_t nr,
		      struct mp_edge_count *out, uint64_t *total, struct mp_err *err)
{
	*total = 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t both;

		if (i && ways[i].vaddr <= ways[i - 1].vaddr)
			return mp_err_set(err, EINVAL, "ways must ascend by address");
		if (__builtin_add_overflow(ways[i].taken, ways[i].fell, &both) ||
		    __builtin_add_overflow(*total, both, total) || *total > INT64_MAX)
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 ways", store->path);
		out[i] = (struct mp_edge_count){.from = ways[i].vaddr,
						.to = ways[i].vaddr,
						.count = both,
						.mispredicted = ways[i].fell};
	}
	return 0;
}

int mp_store_add_ways(struct mp_store *store, int64_t module, int64_t when_s,
		      const struct mp_way_count *ways, size_t nr, struct mp_err *err)
{
	struct mp_edge_count *entries;
	uint64_t total = 0;
	int r;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "ways of a time before 1970");
	entries = malloc((nr + 1) * sizeof(*entries));
	if (!entries)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = to_entries(store, ways, nr, entries, &total, err);
	if (!r && total)
		r = mp_series_add(store, &mp_series_ways, module, when_s, false, entries, nr, total,
				  err);
	free(entries);
	return r;
}

int mp_store_read_ways(struct mp_store *store, int64_t module, int64_t since_s,
		       struct mp_way_count **out, size_t *nr, struct mp_err *err)
{
	struct mp_way_count *ways = NULL;
	const struct mp_edge_count *entries;
	void *read = NULL;
	size_t n = 0;
	int r = mp_series_read(store, &mp_series_ways, module, since_s, &read, &n, err);

	if (r)
		return r;
	entries = read;
	if (n)
		ways = malloc(n * sizeof(*ways));
	for (size_t i = 0; ways && i < n; i++)
		ways[i] = (struct mp_way_count){entries[i].from,
						entries[i].count - entries[i].mispredicted,
						entries[i].mispredicted};
	free(read);
	if (n && !ways)
		return mp_err_set(err, ENOMEM, "out of memory");
	*out = ways;
	*nr = n;
	return 0;
}

int mp_store_sum_ways(struct mp_store *store, uint64_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_WAY_SUM, "SELECT sum(nr_ways) FROM way_bucket", &stmt,
			      err);

	if (r)
		return r;
	r = mp_store_step(store, stmt, "read", err);
	*nr = 0;
	if (r > 0) {
		*nr = (uint64_t)sqlite3_column_int64(stmt, 0);
		sqlite3_reset(stmt);
	}
	return r < 0 ? r : 0;
}

/* Adds entries to all days of @span. */
static int add_span(struct mp_store *store, int64_t module, const struct mp_span *span,
		    const void *entries, size_t nr, uint64_t total, struct mp_err *err)
{
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	if (span->first_day != span->last_day)
		r = mp_series_widen(store, &mp_series_ways, module, span, err);
	if (!r)
		r = mp_series_add(store, &mp_series_ways, module,
				  span->last_day * MP_SECONDS_PER_DAY, false, entries, nr, total,
				  err);
	return mp_store_leave(store, began, r, err);
}

int mp_store_merge_ways(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
			uint64_t *nr, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr_spans = 0;
	int r = mp_series_list_spans(in, &mp_series_ways, from, &spans, &nr_spans, err);

	for (size_t i = 0; i < nr_spans && !r; i++) {
		void *entries = NULL;
		size_t n = 0;
		uint64_t total;

		r = mp_span_check(&spans[i], err);
		if (!r)
			r = mp_series_read_span(in, &mp_series_ways, from, &spans[i], &entries, &n,
						err);
		if (!r && n) {
			total = mp_series_ways.sum(entries, n);
			r = add_span(out, to, &spans[i], entries, n, total, err);
			*nr += total;
		}
		free(entries);
	}
	free(spans);
	return r;
}
