// SPDX-License-Identifier: Apache-2.0
/*
 * store_paths - counts of samples per path; see store_paths.h. Each path of a bucket of
 * days has a row of its own, since keys cannot be grouped by chunks of text. Decides which
 * detail is dropped if paths are too many. Called by daemon (add), store_merge, and all
 * readers of paths.
 */
#include "libprof/store/store_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/varint.h"
#include "libprof/store/store_bucket.h"
#include "libprof/store/store_path_list.h"
#include "libprof/store/store_series.h"

/*
 * Bytes of a row beside its path: the bucket's key, the count, the row's header, its place
 * in the page.
 */
#define PATH_ROW_BYTES 12
/*
 * A module's share of the database. The fixed part is larger than that of counts: the text
 * size of an original whose file was never seen is unknown, and the user asked for paths.
 */
#define BUDGET_FIXED	    (1 << 20)
#define BUDGET_TEXT_DIVISOR 2

/* A bucket's checksum is the sum over its rows. Nothing else would detect a changed count. */
static uint64_t hash_of(const uint8_t *key, size_t size, uint64_t count)
{
	return XXH3_64bits_withSeed(key, size, count);
}

static bool is_key(const void *key, size_t size)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];

	return key && size <= MP_PATH_KEY_MAX && mp_path_key_decode(key, size, vaddrs, NULL);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Appends the rows of @bucket to @list and checks each. */
static int read_rows(struct mp_store *store, const struct mp_bucket *bucket,
		     struct mp_path_list *list, struct mp_err *err)
{
	uint64_t total = 0, nr_bytes = 0, checksum = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PATH_LIST,
			      "SELECT path, nr FROM path WHERE bucket = ?1", &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		const uint8_t *key = sqlite3_column_blob(stmt, 0);
		int size = sqlite3_column_bytes(stmt, 0);
		int64_t nr = sqlite3_column_int64(stmt, 1);

		/* A damaged tree could loop for ever. */
		if (size <= 0 || nr <= 0 || !is_key(key, (size_t)size) ||
		    nr_bytes > bucket->nr_bytes)
			r = mp_store_damaged(store, "malformed paths", err);
		else
			r = mp_path_list_add(list, key, (uint32_t)size, (uint64_t)nr, err);
		if (r)
			break;
		total += (uint64_t)nr;
		nr_bytes += (uint64_t)size + PATH_ROW_BYTES;
		checksum += hash_of(key, (size_t)size, (uint64_t)nr);
	}
	sqlite3_reset(stmt);
	if (!r && (total != bucket->total || nr_bytes != bucket->nr_bytes))
		r = mp_store_damaged(store, "paths that do not add up", err);
	if (!r && checksum != bucket->checksum)
		r = mp_store_damaged(store, "paths that do not match their checksum", err);
	return r;
}

/* *@count 0: there is no such row. */
static int find_row(struct mp_store *store, int64_t bucket, const uint8_t *key, uint32_t size,
		    int64_t *count, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PATH_FIND,
			      "SELECT nr FROM path WHERE bucket = ?1 AND path = ?2", &stmt, err);

	*count = 0;
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket);
	sqlite3_bind_blob(stmt, 2, key, (int)size, SQLITE_STATIC);
	r = mp_store_step(store, stmt, "read", err);
	if (r <= 0)
		return r;
	*count = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return *count > 0 ? 0 : mp_store_damaged(store, "malformed paths", err);
}

/* Adds @count to the path's row and to the sums in @bucket; the caller writes the bucket. */
static int add_row(struct mp_store *store, struct mp_bucket *bucket, const uint8_t *key,
		   uint32_t size, uint64_t count, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int64_t have;
	int r;

	if (count > INT64_MAX - bucket->total)
		return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples", store->path);
	r = find_row(store, bucket->key, key, size, &have, err);
	if (!r && have > INT64_MAX - (int64_t)count)
		r = mp_store_damaged(store, "paths that do not add up", err);
	if (!r)
		r = mp_store_stmt(store, MP_STMT_PATH_SET,
				  "REPLACE INTO path(bucket, path, nr) VALUES(?1, ?2, ?3)", &stmt,
				  err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key);
	sqlite3_bind_blob(stmt, 2, key, (int)size, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, have + (int64_t)count);
	r = mp_store_run(store, stmt, "write", err);
	if (r)
		return r;
	if (have)
		bucket->checksum -= hash_of(key, size, (uint64_t)have);
	else
		bucket->nr_bytes += size + PATH_ROW_BYTES;
	bucket->checksum += hash_of(key, size, (uint64_t)have + count);
	bucket->total += count;
	return 0;
}

static int delete_row(struct mp_store *store, struct mp_bucket *bucket,
		      const struct mp_path_count *path, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PATH_DELETE,
			      "DELETE FROM path WHERE bucket = ?1 AND path = ?2", &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key);
	sqlite3_bind_blob(stmt, 2, path->key, (int)path->key_size, SQLITE_STATIC);
	r = mp_store_run(store, stmt, "write", err);
	bucket->checksum -= hash_of(path->key, path->key_size, path->count);
	bucket->total -= path->count;
	bucket->nr_bytes -= path->key_size + PATH_ROW_BYTES;
	return r;
}

/* ---- buckets ------------------------------------------------------------------------------- */

/* All buckets of the module, in order of days. Ownership: free(*@out). */
static int read_buckets(struct mp_store *store, int64_t module, struct mp_bucket **out, size_t *nr,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PATH_BUCKET_LIST,
			      "SELECT key, first_day, last_day, nr_samples, nr_bytes, checksum"
			      " FROM path_bucket WHERE module = ?1 ORDER BY first_day",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	return mp_buckets_read(store, stmt, out, nr, err);
}

/* @bucket->key 0: a new one, which gets its key. */
static int write_bucket(struct mp_store *store, int64_t module, struct mp_bucket *bucket,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (bucket->key)
		r = mp_store_stmt(store, MP_STMT_PATH_BUCKET_SET,
				  "UPDATE path_bucket SET first_day = ?2, last_day = ?3,"
				  " nr_samples = ?4, nr_bytes = ?5, checksum = ?6 WHERE key = ?1",
				  &stmt, err);
	else
		r = mp_store_stmt(store, MP_STMT_PATH_BUCKET_ADD,
				  "INSERT INTO path_bucket(module, first_day, last_day, nr_samples,"
				  " nr_bytes, checksum) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
				  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key ? bucket->key : module);
	sqlite3_bind_int64(stmt, 2, bucket->first_day);
	sqlite3_bind_int64(stmt, 3, bucket->last_day);
	sqlite3_bind_int64(stmt, 4, (int64_t)bucket->total);
	sqlite3_bind_int64(stmt, 5, (int64_t)bucket->nr_bytes);
	sqlite3_bind_int64(stmt, 6, (int64_t)bucket->checksum);
	r = mp_store_run(store, stmt, "write", err);
	if (!r && !bucket->key)
		bucket->key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int run_with_key(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t key,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, which, sql, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, key);
	return mp_store_run(store, stmt, "write", err);
}

/* Adds all of @from, its neighbour in time, to @into; the caller writes @into. */
static int fold_bucket(struct mp_store *store, struct mp_bucket *into, const struct mp_bucket *from,
		       struct mp_err *err)
{
	struct mp_path_list list = {0};
	int r = read_rows(store, from, &list, err);

	mp_path_list_point(&list);
	for (size_t i = 0; i < list.nr && !r; i++)
		r = add_row(store, into, list.paths[i].key, list.paths[i].key_size,
			    list.paths[i].count, err);
	mp_path_list_fini(&list);
	if (!r)
		r = run_with_key(store, MP_STMT_PATH_DELETE_ALL,
				 "DELETE FROM path WHERE bucket = ?1", from->key, err);
	if (!r)
		r = run_with_key(store, MP_STMT_PATH_BUCKET_DELETE,
				 "DELETE FROM path_bucket WHERE key = ?1", from->key, err);
	if (into->first_day > from->first_day)
		into->first_day = from->first_day;
	if (into->last_day < from->last_day)
		into->last_day = from->last_day;
	store->folded = true;
	return r;
}

/* ---- too many paths ------------------------------------------------------------------------ */

static int compare_rarest(const void *a, const void *b)
{
	const struct mp_path_count *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return mp_path_compare_keys(a, b);
}

uint32_t mp_path_shorten(const struct mp_path_count *path, uint32_t keep, uint8_t *key)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint32_t nr_complete,
		nr = mp_path_key_decode(path->key, path->key_size, vaddrs, &nr_complete);
	struct mp_varint_writer w = {0};
	uint32_t size = 0;

	if (nr <= keep)
		return 0;
	mp_varint_put(&w, vaddrs[nr - keep]);
	for (uint32_t i = nr - keep + 1; i < nr; i++)
		mp_varint_put_signed(&w, (int64_t)(vaddrs[i] - vaddrs[i - 1]));
	if (nr_complete != MP_PATH_SAMPLED) {
		mp_varint_put_signed(&w, -(int64_t)vaddrs[nr - 1]);
		mp_varint_put(&w, nr_complete < keep ? nr_complete : keep - 1);
	}
	if (!w.failed && w.size <= MP_PATH_KEY_MAX) {
		size = (uint32_t)w.size;
		memcpy(key, w.bytes, size);
	}
	free(w.bytes);
	return size;
}

static int shorten_rarest(struct mp_store *store, struct mp_bucket *bucket, uint32_t keep,
			  uint64_t max_bytes, struct mp_err *err)
{
	uint8_t key[MP_PATH_KEY_MAX];
	struct mp_path_list list = {0};
	uint32_t size;
	int r = read_rows(store, bucket, &list, err);

	mp_path_list_point(&list);
	if (!r && list.nr)
		qsort(list.paths, list.nr, sizeof(*list.paths), compare_rarest);
	for (size_t i = 0; i < list.nr && !r && bucket->nr_bytes > max_bytes; i++) {
		size = mp_path_shorten(&list.paths[i], keep, key);
		if (!size)
			continue;
		r = delete_row(store, bucket, &list.paths[i], err);
		if (!r)
			r = add_row(store, bucket, key, size, list.paths[i].count, err);
	}
	store->folded = true;
	mp_path_list_fini(&list);
	return r;
}

/*
 * Shortens paths until a bucket is small enough. The number of paths of a program has no
 * limit, but its text limits the number of edges and blocks. Goes down to 3/4 of the
 * budget, so that this is not needed at every flush.
 */
static int shorten_paths(struct mp_store *store, struct mp_bucket *bucket, uint64_t budget,
			 struct mp_err *err)
{
	int r = 0;

	for (uint32_t keep = 2; keep && !r && bucket->nr_bytes > budget / 4 * 3; keep--)
		r = shorten_rarest(store, bucket, keep, budget / 4 * 3, err);
	return r;
}

/* Folds days as for counts; see store_series. */
static int keep_below(struct mp_store *store, int64_t module, uint64_t budget, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	uint64_t nr_bytes = 0;
	size_t nr = 0, first = 0;
	int r = read_buckets(store, module, &buckets, &nr, err);

	for (size_t i = 0; i < nr; i++)
		nr_bytes += buckets[i].nr_bytes;
	while (!r && nr - first > 1) {
		struct mp_bucket *into = &buckets[first], *next = into + 1;

		if (next->last_day > buckets[nr - 1].last_day - MP_KEEP_DAYS && nr_bytes <= budget)
			break;
		nr_bytes -= into->nr_bytes + next->nr_bytes;
		r = fold_bucket(store, into, next, err);
		if (!r)
			r = write_bucket(store, module, into, err);
		nr_bytes += into->nr_bytes;
		*next = *into;
		first++;
	}
	if (!r && nr && nr_bytes > budget) {
		r = shorten_paths(store, &buckets[first], budget, err);
		if (!r)
			r = write_bucket(store, module, &buckets[first], err);
	}
	free(buckets);
	return r;
}

/* ---- add, read ----------------------------------------------------------------------------- */

/* The bucket that holds all days of @span; overlapping buckets become one. */
static int bucket_of_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			  struct mp_bucket *bucket, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t nr = 0;
	int r = read_buckets(store, module, &buckets, &nr, err);

	*bucket = (struct mp_bucket){.first_day = span->first_day, .last_day = span->last_day};
	for (size_t i = 0; i < nr && !r; i++) {
		if (buckets[i].last_day < span->first_day || buckets[i].first_day > span->last_day)
			continue;
		if (bucket->key)
			r = fold_bucket(store, bucket, &buckets[i], err);
		else
			*bucket = buckets[i];
	}
	free(buckets);
	if (bucket->first_day > span->first_day)
		bucket->first_day = span->first_day;
	if (bucket->last_day < span->last_day)
		bucket->last_day = span->last_day;
	return !r && !bucket->key ? write_bucket(store, module, bucket, err) : r;
}

static int check_paths(struct mp_store *store, const struct mp_path_count *paths, size_t nr,
		       uint64_t *total, struct mp_err *err)
{
	*total = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!is_key(paths[i].key, paths[i].key_size))
			return mp_err_set(err, EINVAL, "a malformed path");
		if (__builtin_add_overflow(*total, paths[i].count, total) || *total > INT64_MAX)
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples",
					  store->path);
	}
	return 0;
}

static int add(struct mp_store *store, int64_t module, const struct mp_span *span,
	       const struct mp_path_count *paths, size_t nr, struct mp_err *err)
{
	struct mp_bucket bucket;
	uint64_t text_size;
	int r = mp_series_text_size(store, module, &text_size, err);

	if (!r)
		r = bucket_of_span(store, module, span, &bucket, err);
	for (size_t i = 0; i < nr && !r; i++)
		if (paths[i].count)
			r = add_row(store, &bucket, paths[i].key, paths[i].key_size, paths[i].count,
				    err);
	if (!r)
		r = write_bucket(store, module, &bucket, err);
	return r ? r
		 : keep_below(store, module,
			      mp_bucket_budget(BUDGET_FIXED, text_size, BUDGET_TEXT_DIVISOR), err);
}

int mp_store_add_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			   const struct mp_path_count *paths, size_t nr, struct mp_err *err)
{
	uint64_t total;
	bool began;
	int r = check_paths(store, paths, nr, &total, err);

	if (!r)
		r = mp_span_check(span, err);
	if (r || !total)
		return r;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = add(store, module, span, paths, nr, err);
	return mp_store_leave(store, began, r, err);
}

int mp_store_add_paths(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_path_count *paths, size_t nr, struct mp_err *err)
{
	const struct mp_span day = {.first_day = mp_day_of(when_s), .last_day = mp_day_of(when_s)};

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "paths of a time before 1970");
	return mp_store_add_path_span(store, module, &day, paths, nr, err);
}

/* Reads the buckets that lie entirely in @span, or without @span those that @since_s includes. */
static int read(struct mp_store *store, int64_t module, const struct mp_span *span, int64_t since_s,
		struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	struct mp_path_list list = {0};
	size_t nr_buckets = 0;
	uint64_t text_size;
	bool began;
	int r = mp_store_enter(store, &began, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	r = mp_series_text_size(store, module, &text_size, err);
	if (!r)
		r = read_buckets(store, module, &buckets, &nr_buckets, err);
	for (size_t i = 0; i < nr_buckets && !r; i++) {
		if (span ? buckets[i].first_day < span->first_day ||
				    buckets[i].last_day > span->last_day
			 : !mp_day_wanted(buckets[i].last_day, since_s))
			continue;
		r = read_rows(store, &buckets[i], &list, err);
	}
	free(buckets);
	r = mp_store_leave(store, began, r, err);
	if (!r)
		r = mp_path_list_finish(store, &list, out, nr, err);
	mp_path_list_fini(&list);
	return r;
}

int mp_store_read_paths(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	return read(store, module, NULL, since_s, out, nr, err);
}

int mp_store_read_path_span(struct mp_store *store, int64_t module, const struct mp_span *span,
			    struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	return read(store, module, span, 0, out, nr, err);
}

int mp_store_list_path_spans(struct mp_store *store, int64_t module, struct mp_span **out,
			     size_t *nr, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	int r = read_buckets(store, module, &buckets, nr, err);

	if (!r)
		r = mp_buckets_list_spans(buckets, *nr, out, err);
	for (size_t i = 0; !r && i < *nr; i++)
		(*out)[i].exact = false;
	free(buckets);
	return r;
}

/* ---- check --------------------------------------------------------------------------------- */

int mp_store_check_paths(struct mp_store *store, uint64_t *total, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	struct mp_bucket *buckets = NULL;
	size_t nr_modules = 0, nr = 0;
	struct mp_path_list list = {0};
	int r;

	*total = 0;
	r = mp_store_check_none(store,
				"SELECT (SELECT count(*) FROM path_bucket"
				" WHERE module NOT IN (SELECT key FROM module))",
				"paths without a module", err);
	if (!r)
		r = mp_store_check_none(store,
					"SELECT count(*) FROM path"
					" WHERE bucket NOT IN (SELECT key FROM path_bucket)",
					"paths without a day", err);
	if (!r)
		r = mp_store_list_modules(store, 0, &modules, &nr_modules, err);
	for (size_t m = 0; m < nr_modules && !r; m++) {
		r = read_buckets(store, modules[m].key, &buckets, &nr, err);
		for (size_t i = 0; i < nr && !r; i++) {
			r = read_rows(store, &buckets[i], &list, err);
			*total += buckets[i].total;
			mp_path_list_fini(&list);
		}
		free(buckets);
		buckets = NULL;
		nr = 0;
	}
	mp_store_free_modules(modules, nr_modules);
	return r;
}
