// SPDX-License-Identifier: Apache-2.0
/*
 * store_copies - samples of outputs by their own addresses; see store_copies.h. store_series
 * decides how they are kept.
 */
#include "libprof/store/store_copies.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/store/store_series.h"

static int put_copied(struct mp_store *store, int64_t output, int64_t original, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_COPIED_PUT,
			      "INSERT OR REPLACE INTO copied(output, original) VALUES(?1, ?2)",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, output);
	sqlite3_bind_int64(stmt, 2, original);
	return mp_store_run(store, stmt, "write", err);
}

/* Adds entries to one day, or to all days of @span. */
static int add_entries(struct mp_store *store, int64_t output, int64_t original,
		       const struct mp_span *span, const struct mp_edge_count *entries, size_t nr,
		       uint64_t total, struct mp_err *err)
{
	uint64_t text_size;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = mp_series_text_size(store, original, &text_size, err);
	if (!r && span->first_day != span->last_day)
		r = mp_series_widen(store, &mp_series_copies, output, span, err);
	if (!r)
		r = mp_series_add(store, &mp_series_copies, output,
				  span->last_day * MP_SECONDS_PER_DAY, false, entries, nr, total,
				  err);
	if (!r)
		r = put_copied(store, output, original, err);
	return mp_store_leave(store, began, r, err);
}

int mp_store_add_copies(struct mp_store *store, int64_t output, int64_t original, int64_t when_s,
			const struct mp_copy_count *counts, size_t nr, struct mp_err *err)
{
	struct mp_span day = {.first_day = mp_day_of(when_s), .last_day = mp_day_of(when_s)};
	struct mp_edge_count *entries;
	uint64_t total = 0;
	int r = 0;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "samples of a time before 1970");
	entries = malloc((nr + 1) * sizeof(*entries));
	if (!entries)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < nr && !r; i++) {
		if (i && counts[i].vaddr <= counts[i - 1].vaddr)
			r = mp_err_set(err, EINVAL, "samples of copies must ascend by address");
		else if (__builtin_add_overflow(total, counts[i].count, &total) ||
			 total > INT64_MAX)
			r = mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples", store->path);
		entries[i] = (struct mp_edge_count){.from = counts[i].vaddr,
						    .to = counts[i].original,
						    .count = counts[i].count};
	}
	if (!r && total)
		r = add_entries(store, output, original, &day, entries, nr, total, err);
	free(entries);
	return r;
}

int mp_store_read_copies(struct mp_store *store, int64_t output, int64_t since_s,
			 struct mp_copy_count **out, size_t *nr, struct mp_err *err)
{
	const struct mp_edge_count *entries;
	void *read = NULL;
	int r = mp_series_read(store, &mp_series_copies, output, since_s, &read, nr, err);

	*out = NULL;
	if (!r && *nr) {
		entries = read;
		*out = malloc(*nr * sizeof(**out));
		if (!*out)
			r = mp_err_set(err, ENOMEM, "out of memory");
		for (size_t i = 0; i < *nr && !r; i++)
			(*out)[i] = (struct mp_copy_count){entries[i].from, entries[i].to,
							   entries[i].count};
	}
	free(read);
	return r;
}

int mp_store_list_copied(struct mp_store *store, struct mp_copied **out, size_t *nr,
			 struct mp_err *err)
{
	struct mp_copied *list = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_COPIED_LIST,
			      "SELECT output, original FROM copied ORDER BY output", &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(list, max, n + 1, err);
		if (r)
			break;
		list[n++] = (struct mp_copied){sqlite3_column_int64(stmt, 0),
					       sqlite3_column_int64(stmt, 1)};
		/* Check the order: a damaged tree could otherwise loop for ever. */
		if (n > 1 && list[n - 1].output <= list[n - 2].output) {
			r = mp_store_damaged(store, "outputs out of order", err);
			break;
		}
	}
	sqlite3_reset(stmt);
	if (r) {
		free(list);
		return r;
	}
	*out = list;
	*nr = n;
	return 0;
}

int mp_store_merge_copies(struct mp_store *out, int64_t to, int64_t original, struct mp_store *in,
			  int64_t from, struct mp_err *err)
{
	struct mp_span *spans = NULL;
	size_t nr_spans = 0;
	int r = mp_series_list_spans(in, &mp_series_copies, from, &spans, &nr_spans, err);

	for (size_t i = 0; i < nr_spans && !r; i++) {
		void *entries = NULL;
		size_t nr = 0;

		r = mp_span_check(&spans[i], err);
		if (!r)
			r = mp_series_read_span(in, &mp_series_copies, from, &spans[i], &entries,
						&nr, err);
		if (!r && nr)
			r = add_entries(out, to, original, &spans[i], entries, nr,
					mp_series_copies.sum(entries, nr), err);
		free(entries);
	}
	free(spans);
	return r;
}

int mp_store_check_copied(struct mp_store *store, struct mp_err *err)
{
	return mp_store_check_none(
		store,
		"SELECT (SELECT count(*) FROM copied WHERE output NOT IN (SELECT key FROM module)"
		" OR original NOT IN (SELECT key FROM module)) + (SELECT count(*) FROM copy_bucket"
		" WHERE module NOT IN (SELECT output FROM copied))",
		"an output without an original", err);
}
