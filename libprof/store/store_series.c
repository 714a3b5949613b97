// SPDX-License-Identifier: Apache-2.0
/*
 * store_series - keeps entries per address in buckets of days and chunks of text. Decides
 * when days are folded together, so that the database stays small beside the text. Called
 * by store_ip_counts, store_edges and store_check.
 */
#include "libprof/store/store_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_bucket.h"
#include "libprof/store/store_chunk.h"
#include "libprof/store/store_codec.h"

/*
 * A module's share of the database, once for its counts and once for its edges: 64 KiB and
 * a tenth of its text.
 */
#define BUDGET_FIXED	    (64 << 10)
#define BUDGET_TEXT_DIVISOR 10
static uint64_t chunk_of(const struct mp_series *series, const void *entries, size_t i)
{
	uint64_t vaddr;

	memcpy(&vaddr, mp_series_entry_at(series, entries, i), sizeof(vaddr));
	return vaddr >> MP_CHUNK_SHIFT;
}

/* ---- buckets ------------------------------------------------------------------------------- */

/* All buckets of the module, in order of days. Ownership: free(*@out). */
static int read_buckets(struct mp_store *store, const struct mp_series *series, int64_t module,
			struct mp_bucket **out, size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_series_prepare(store, series, MP_SERIES_BUCKET_LIST, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	return mp_buckets_read(store, stmt, out, nr, err);
}

static int add_bucket(struct mp_store *store, const struct mp_series *series, int64_t module,
		      int64_t day, int64_t *key, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_series_prepare(store, series, MP_SERIES_BUCKET_ADD, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, day);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		*key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int set_bucket(struct mp_store *store, const struct mp_series *series,
		      const struct mp_bucket *bucket, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_series_prepare(store, series, MP_SERIES_BUCKET_SET, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key);
	sqlite3_bind_int64(stmt, 2, bucket->first_day);
	sqlite3_bind_int64(stmt, 3, bucket->last_day);
	sqlite3_bind_int64(stmt, 4, (int64_t)bucket->total);
	sqlite3_bind_int64(stmt, 5, (int64_t)bucket->nr_bytes);
	sqlite3_bind_int64(stmt, 6, bucket->exact);
	return mp_store_run(store, stmt, "write", err);
}

static int run_with_key(struct mp_store *store, const struct mp_series *series,
			enum mp_series_stmt which, int64_t key, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_series_prepare(store, series, which, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, key);
	return mp_store_run(store, stmt, "write", err);
}

/* Exactness of a bucket after an addition: samples in it make it inexact. */
static bool both_exact(const struct mp_bucket *bucket, bool exact)
{
	return exact && (bucket->exact || !bucket->total);
}

/* Merges bucket @from into @into, its neighbour in time. */
static int fold_bucket(struct mp_store *store, const struct mp_series *series,
		       struct mp_bucket *into, const struct mp_bucket *from, struct mp_err *err)
{
	struct mp_store_array entries = {0}; /* scratch is in use by mp_series_chunk_add() */
	int64_t chunk = -1, grown = 0;
	sqlite3_stmt *stmt;
	size_t nr, size;
	int r, more;

	r = mp_series_chunk_list(store, series, from->key, &stmt, err);
	while (!r) {
		more = mp_series_chunk_next(store, series, stmt, &chunk, &entries, 0, &nr, &size,
					    err);
		if (more <= 0) {
			r = more;
			break;
		}
		/* Reads the rows of @from and writes those of @into, so the cursor is safe. */
		r = mp_series_chunk_add(store, series, into->key, chunk, entries.data, nr, &grown,
					err);
		if (r)
			sqlite3_reset(stmt);
	}
	free(entries.data);
	if (!r)
		r = run_with_key(store, series, MP_SERIES_CHUNK_DELETE, from->key, err);
	if (!r)
		r = run_with_key(store, series, MP_SERIES_BUCKET_DELETE, from->key, err);
	if (r)
		return r;
	into->last_day = from->last_day;
	into->exact = both_exact(into, from->exact);
	into->total += from->total;
	into->nr_bytes += (uint64_t)grown;
	store->folded = true;
	if (into->total > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 %s", store->path,
				  series->what);
	return set_bucket(store, series, into, err);
}

static uint64_t budget_of(uint64_t text_size)
{
	return mp_bucket_budget(BUDGET_FIXED, text_size, BUDGET_TEXT_DIVISOR);
}

/* Folds the oldest days while they are beyond the horizon, or the module exceeds its budget. */
static int fold_old_days(struct mp_store *store, const struct mp_series *series, int64_t module,
			 uint64_t text_size, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	uint64_t nr_bytes;
	size_t nr = 0;
	int r = read_buckets(store, series, module, &buckets, &nr, err);

	while (!r && nr > 1) {
		nr_bytes = 0;
		for (size_t i = 0; i < nr; i++)
			nr_bytes += buckets[i].nr_bytes;
		if (buckets[1].last_day > buckets[nr - 1].last_day - MP_KEEP_DAYS &&
		    nr_bytes <= budget_of(text_size))
			break;
		r = fold_bucket(store, series, &buckets[0], &buckets[1], err);
		nr--;
		memmove(&buckets[1], &buckets[2], (nr - 1) * sizeof(*buckets));
	}
	free(buckets);
	return r;
}

/* Finds the bucket that holds @day, or makes one. */
static int bucket_of_day(struct mp_store *store, const struct mp_series *series, int64_t module,
			 int64_t day, struct mp_bucket *bucket, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t nr = 0, i;
	int r = read_buckets(store, series, module, &buckets, &nr, err);

	memset(bucket, 0, sizeof(*bucket));
	if (r)
		return r;
	for (i = nr; i-- > 0;) {
		if (buckets[i].first_day <= day && day <= buckets[i].last_day) {
			*bucket = buckets[i];
			break;
		}
	}
	free(buckets);
	return i == SIZE_MAX ? add_bucket(store, series, module, day, &bucket->key, err) : 0;
}

/* ---- add, read ----------------------------------------------------------------------------- */

int mp_series_text_size(struct mp_store *store, int64_t module, uint64_t *text_size,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_MODULE_TEXT_SIZE,
			      "SELECT text_size FROM module WHERE key = ?1", &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	r = mp_store_step(store, stmt, "read", err);
	if (r > 0) {
		*text_size = (uint64_t)sqlite3_column_int64(stmt, 0);
		sqlite3_reset(stmt);
		return 0;
	}
	return r ? r
		 : mp_err_set(err, ENOENT, "%s: no module %lld", store->path, (long long)module);
}

static int add_to_bucket(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 const void *entries, size_t nr, int64_t *grown, struct mp_err *err)
{
	for (size_t i = 0, end; i < nr; i = end) {
		uint64_t chunk = chunk_of(series, entries, i);
		int r;

		for (end = i + 1; end < nr && chunk_of(series, entries, end) == chunk; end++)
			;
		r = mp_series_chunk_add(store, series, bucket, (int64_t)chunk,
					mp_series_entry_at(series, entries, i), end - i, grown,
					err);
		if (r)
			return r;
	}
	return 0;
}

static int add(struct mp_store *store, const struct mp_series *series, int64_t module,
	       int64_t when_s, bool exact, const void *entries, size_t nr, uint64_t total,
	       struct mp_err *err)
{
	struct mp_bucket bucket;
	uint64_t text_size;
	sqlite3_stmt *stmt;
	int64_t grown = 0;
	int r = mp_series_text_size(store, module, &text_size, err);

	if (!r)
		r = bucket_of_day(store, series, module, mp_day_of(when_s), &bucket, err);
	if (!r && total > INT64_MAX - bucket.total)
		r = mp_err_set(err, EOVERFLOW, "%s: more than 2^63 %s", store->path, series->what);
	if (!r)
		r = add_to_bucket(store, series, bucket.key, entries, nr, &grown, err);
	if (!r)
		r = mp_series_prepare(store, series, MP_SERIES_BUCKET_GROW, &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket.key);
	sqlite3_bind_int64(stmt, 2, (int64_t)total);
	sqlite3_bind_int64(stmt, 3, grown);
	sqlite3_bind_int64(stmt, 4, both_exact(&bucket, exact));
	r = mp_store_run(store, stmt, "write", err);
	return r ? r : fold_old_days(store, series, module, text_size, err);
}

int mp_series_add(struct mp_store *store, const struct mp_series *series, int64_t module,
		  int64_t when_s, bool exact, const void *entries, size_t nr, uint64_t total,
		  struct mp_err *err)
{
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = add(store, series, module, when_s, exact, entries, nr, total, err);
	return mp_store_leave(store, began, r, err);
}

/* Reads all entries of the bucket. */
static int read_bucket(struct mp_store *store, const struct mp_series *series,
		       const struct mp_bucket *bucket, struct mp_store_array *all, size_t *nr,
		       struct mp_err *err)
{
	uint64_t total = 0;
	int64_t chunk = -1;
	sqlite3_stmt *stmt;
	size_t n, size;
	int r = mp_series_chunk_list(store, series, bucket->key, &stmt, err);

	*nr = 0;
	if (r)
		return r;
	while ((r = mp_series_chunk_next(store, series, stmt, &chunk, all, *nr, &n, &size, err)) >
	       0) {
		total += series->sum(mp_series_entry_at(series, all->data, *nr), n);
		*nr += n;
	}
	if (!r && total != bucket->total)
		r = mp_store_damaged(store, "counts that do not add up", err);
	return r;
}

/* Merges @bucket into the ascending entries of @all. */
static int merge_bucket(struct mp_store *store, const struct mp_series *series,
			const struct mp_bucket *bucket, struct mp_store_array *all, size_t *nr,
			struct mp_err *err)
{
	struct mp_store_array more = {0}, both = {0};
	size_t nr_more = 0, nr_both = 0;
	int r = read_bucket(store, series, bucket, *nr ? &more : all, &nr_more, err);

	if (!r && !*nr) {
		*nr = nr_more;
		return 0;
	}
	if (!r)
		r = mp_store_array_reserve(&both, (*nr + nr_more) * series->entry_size, err);
	if (!r && series->merge(all->data, *nr, more.data, nr_more, both.data, &nr_both))
		r = mp_store_damaged(store, "a count beyond 64 bits", err);
	free(more.data);
	if (r) {
		free(both.data);
		return r;
	}
	free(all->data);
	*all = both;
	*nr = nr_both;
	return 0;
}

/* Of the module's buckets that lie in @span and hold days since @since_s. */
static int read_days(struct mp_store *store, const struct mp_series *series, int64_t module,
		     const struct mp_span *span, int64_t since_s, void **out, size_t *nr,
		     struct mp_err *err)
{
	struct mp_store_array all = {0};
	struct mp_bucket *buckets = NULL;
	size_t n = 0, nr_buckets = 0;
	uint64_t text_size;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = mp_series_text_size(store, module, &text_size, err);
	if (!r)
		r = read_buckets(store, series, module, &buckets, &nr_buckets, err);
	for (size_t i = 0; i < nr_buckets && !r; i++)
		if (buckets[i].first_day >= span->first_day &&
		    buckets[i].last_day <= span->last_day &&
		    mp_day_wanted(buckets[i].last_day, since_s))
			r = merge_bucket(store, series, &buckets[i], &all, &n, err);
	free(buckets);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(all.data);
		return r;
	}
	*out = all.data;
	*nr = n;
	return 0;
}

int mp_series_read(struct mp_store *store, const struct mp_series *series, int64_t module,
		   int64_t since_s, void **out, size_t *nr, struct mp_err *err)
{
	const struct mp_span always = {INT64_MIN, INT64_MAX, false};

	return read_days(store, series, module, &always, since_s, out, nr, err);
}

/* ---- spans --------------------------------------------------------------------------------- */

int mp_series_list_spans(struct mp_store *store, const struct mp_series *series, int64_t module,
			 struct mp_span **out, size_t *nr, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	int r = read_buckets(store, series, module, &buckets, nr, err);

	if (!r)
		r = mp_buckets_list_spans(buckets, *nr, out, err);
	free(buckets);
	return r;
}

int mp_series_read_span(struct mp_store *store, const struct mp_series *series, int64_t module,
			const struct mp_span *span, void **out, size_t *nr, struct mp_err *err)
{
	return read_days(store, series, module, span, 0, out, nr, err);
}

int mp_series_widen(struct mp_store *store, const struct mp_series *series, int64_t module,
		    const struct mp_span *span, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL, wide = {.first_day = span->first_day};
	size_t nr = 0, first, end;
	int r = read_buckets(store, series, module, &buckets, &nr, err);

	if (r)
		return r;
	for (first = 0; first < nr && buckets[first].last_day < span->first_day; first++)
		;
	for (end = first; end < nr && buckets[end].first_day <= span->last_day; end++)
		;
	if (first == end) {
		r = add_bucket(store, series, module, span->first_day, &wide.key, err);
	} else {
		wide = buckets[first];
		for (size_t i = first + 1; i < end && !r; i++)
			r = fold_bucket(store, series, &wide, &buckets[i], err);
	}
	free(buckets);
	if (r)
		return r;
	if (wide.first_day > span->first_day)
		wide.first_day = span->first_day;
	if (wide.last_day < span->last_day)
		wide.last_day = span->last_day;
	return set_bucket(store, series, &wide, err);
}

int mp_series_total(struct mp_store *store, const struct mp_series *series, int64_t module,
		    uint64_t *total, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t nr = 0;
	int r = read_buckets(store, series, module, &buckets, &nr, err);

	*total = 0;
	for (size_t i = 0; i < nr && !r; i++)
		*total += buckets[i].total;
	free(buckets);
	return r;
}

int mp_series_sum_bucket(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 uint64_t *total, uint64_t *nr_bytes, struct mp_err *err)
{
	struct mp_store_array *scratch = &store->scratch.entries[0];
	size_t nr, size;
	int64_t chunk = -1;
	sqlite3_stmt *stmt;
	int r = mp_series_chunk_list(store, series, bucket, &stmt, err);

	*total = *nr_bytes = 0;
	if (r)
		return r;
	while ((r = mp_series_chunk_next(store, series, stmt, &chunk, scratch, 0, &nr, &size,
					 err)) > 0) {
		*total += series->sum(scratch->data, nr);
		*nr_bytes += size + MP_CHUNK_ROW_BYTES;
	}
	return r;
}
