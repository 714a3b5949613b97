// SPDX-License-Identifier: Apache-2.0
/*
 * store_counts - counts per instruction address in buckets of days and chunks of text. Decides
 * how they are kept, and when days are folded together so that the database stays small beside
 * the text it speaks of. Called by daemon (add) and by everybody (read).
 *
 *	module -> bucket  days 20410..20770  (older days, folded)
 *	          bucket  day  20771         -> chunk vaddr 0x401000 >> 16: encoded counts
 *	          ...                           chunk ...
 *	          bucket  day  20777 (today)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/store_codec.h"
#include "libprof/store_internal.h"

/* The last days are kept one by one; what is older is one bucket. */
#define KEEP_DAYS 7
/*
 * A module's share of the database: 64 KiB, and a tenth of its text. Rows fill b-tree pages to
 * about two thirds, so that the bytes we count ourselves may be no more than 60 % of it.
 */
#define BUDGET_FIXED	    (64 << 10)
#define BUDGET_TEXT_DIVISOR 10
#define BUDGET_FILL_PERCENT 60
/* Beside its data a chunk costs its row's header and its entry in the index. */
#define CHUNK_ROW_BYTES 34

struct bucket {
	int64_t key, first_day, last_day;
	uint64_t nr_samples, nr_bytes;
};

struct chunk_row {
	int64_t key; /* 0: there is none yet */
	size_t size; /* bytes of data */
};

/* ---- scratch ------------------------------------------------------------------------------- */

static int need_ips(struct mp_store *store, int which, size_t nr, struct mp_err *err)
{
	struct mp_store_scratch *scratch = &store->scratch;

	if (nr > scratch->nr_ips_max[which]) {
		void *bigger = realloc(scratch->ips[which], nr * sizeof(*scratch->ips[which]));

		if (!bigger)
			return mp_err_set(err, ENOMEM, "out of memory");
		scratch->ips[which] = bigger;
		scratch->nr_ips_max[which] = nr;
	}
	return 0;
}

static int need_bytes(struct mp_store *store, size_t nr, struct mp_err *err)
{
	struct mp_store_scratch *scratch = &store->scratch;

	if (nr > scratch->nr_bytes_max) {
		void *bigger = realloc(scratch->bytes, nr);

		if (!bigger)
			return mp_err_set(err, ENOMEM, "out of memory");
		scratch->bytes = bigger;
		scratch->nr_bytes_max = nr;
	}
	return 0;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* The row that @stmt stands on has (checksum, data) at @column; decode it into @out. */
static int decode_columns(struct mp_store *store, sqlite3_stmt *stmt, int column, int64_t chunk,
			  struct mp_ip_count *out, size_t *nr, size_t *size, struct mp_err *err)
{
	const uint8_t *data = sqlite3_column_blob(stmt, column + 1);
	int len = sqlite3_column_bytes(stmt, column + 1);
	uint32_t checksum = (uint32_t)sqlite3_column_int64(stmt, column);

	if (len <= 0 || !data || (uint32_t)XXH3_64bits(data, (size_t)len) != checksum ||
	    mp_chunk_decode((uint64_t)chunk << MP_CHUNK_SHIFT, data, (size_t)len, out, nr))
		return mp_store_damaged(store, "counts that do not match their checksum", err);
	*size = (size_t)len;
	return 0;
}

/* The chunk's counts into scratch.ips[0]; none is no error. */
static int find_chunk(struct mp_store *store, int64_t bucket, int64_t chunk, struct chunk_row *row,
		      size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = need_ips(store, 0, MP_CHUNK_SIZE, err);

	*nr = 0;
	memset(row, 0, sizeof(*row));
	if (!r)
		r = mp_store_stmt(store, MP_STMT_CHUNK_FIND,
				  "SELECT key, checksum, data FROM chunk WHERE bucket = ?1"
				  " AND chunk = ?2",
				  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket);
	sqlite3_bind_int64(stmt, 2, chunk);
	r = mp_store_step(store, stmt, "read", err);
	if (r <= 0)
		return r;
	row->key = sqlite3_column_int64(stmt, 0);
	r = decode_columns(store, stmt, 1, chunk, store->scratch.ips[0], nr, &row->size, err);
	sqlite3_reset(stmt);
	return r;
}

static int write_chunk(struct mp_store *store, int64_t bucket, int64_t chunk,
		       const struct chunk_row *row, const struct mp_ip_count *ips, size_t nr,
		       size_t *size, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = need_bytes(store, nr * MP_CHUNK_ENTRY_MAX, err);

	if (r)
		return r;
	*size = mp_chunk_encode((uint64_t)chunk << MP_CHUNK_SHIFT, ips, nr, store->scratch.bytes);
	if (row->key)
		r = mp_store_stmt(store, MP_STMT_CHUNK_SET,
				  "UPDATE chunk SET checksum = ?3, data = ?4 WHERE key = ?1", &stmt,
				  err);
	else
		r = mp_store_stmt(store, MP_STMT_CHUNK_ADD,
				  "INSERT INTO chunk(bucket, chunk, checksum, data)"
				  " VALUES(?1, ?2, ?3, ?4)",
				  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, row->key ? row->key : bucket);
	if (!row->key)
		sqlite3_bind_int64(stmt, 2, chunk);
	sqlite3_bind_int64(stmt, 3, (uint32_t)XXH3_64bits(store->scratch.bytes, *size));
	sqlite3_bind_blob(stmt, 4, store->scratch.bytes, (int)*size, SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

/* Two ascending arrays into one; equal addresses add up. Return: 0, -EOVERFLOW. */
static int merge(const struct mp_ip_count *a, size_t nr_a, const struct mp_ip_count *b, size_t nr_b,
		 struct mp_ip_count *out, size_t *nr)
{
	size_t i = 0, k = 0, n = 0;

	while (i < nr_a || k < nr_b) {
		struct mp_ip_count next;

		if (k == nr_b || (i < nr_a && a[i].vaddr <= b[k].vaddr))
			next = a[i++];
		else
			next = b[k++];
		if (!next.count)
			continue;
		if (!n || out[n - 1].vaddr != next.vaddr)
			out[n++] = next;
		else if (__builtin_add_overflow(out[n - 1].count, next.count, &out[n - 1].count))
			return -EOVERFLOW;
	}
	*nr = n;
	return 0;
}

/* Merge @ips, all of one chunk, into the bucket. *@grown: how many bytes the rows gained. */
static int add_to_chunk(struct mp_store *store, int64_t bucket, int64_t chunk,
			const struct mp_ip_count *ips, size_t nr, int64_t *grown,
			struct mp_err *err)
{
	size_t nr_old, nr_new, size = 0;
	struct chunk_row row;
	int r = find_chunk(store, bucket, chunk, &row, &nr_old, err);

	if (!r)
		r = need_ips(store, 1, nr_old + nr, err);
	if (r)
		return r;
	if (merge(store->scratch.ips[0], nr_old, ips, nr, store->scratch.ips[1], &nr_new))
		return mp_err_set(err, EOVERFLOW, "%s: a count beyond 64 bits", store->path);
	if (!nr_new)
		return 0;
	r = write_chunk(store, bucket, chunk, &row, store->scratch.ips[1], nr_new, &size, err);
	*grown += (int64_t)size - (int64_t)row.size + (row.key ? 0 : CHUNK_ROW_BYTES);
	return r;
}

/* ---- buckets ------------------------------------------------------------------------------- */

/* All buckets of the module, in order of days. Ownership: free(*@out). */
static int read_buckets(struct mp_store *store, int64_t module, struct bucket **out, size_t *nr,
			struct mp_err *err)
{
	struct bucket *buckets = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_BUCKET_LIST, MP_BUCKET_LIST_SQL, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct bucket b = {
			.key = sqlite3_column_int64(stmt, 0),
			.first_day = sqlite3_column_int64(stmt, 1),
			.last_day = sqlite3_column_int64(stmt, 2),
			.nr_samples = (uint64_t)sqlite3_column_int64(stmt, 3),
			.nr_bytes = (uint64_t)sqlite3_column_int64(stmt, 4),
		};

		if (b.first_day > b.last_day || (n && buckets[n - 1].last_day >= b.first_day) ||
		    b.nr_samples > INT64_MAX || b.nr_bytes > INT64_MAX) {
			r = mp_store_damaged(store, "days that overlap", err);
			break;
		}
		if (n == max) {
			size_t more = max ? 2 * max : KEEP_DAYS + 3;
			void *bigger = realloc(buckets, more * sizeof(*buckets));

			if (!bigger) {
				r = mp_err_set(err, ENOMEM, "out of memory");
				break;
			}
			buckets = bigger;
			max = more;
		}
		buckets[n++] = b;
	}
	sqlite3_reset(stmt);
	if (r) {
		free(buckets);
		return r;
	}
	*out = buckets;
	*nr = n;
	return 0;
}

static int add_bucket(struct mp_store *store, int64_t module, int64_t day, int64_t *key,
		      struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_BUCKET_ADD,
		"INSERT INTO bucket(module, first_day, last_day, nr_samples, nr_bytes)"
		" VALUES(?1, ?2, ?2, 0, 0)",
		&stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, day);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		*key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int set_bucket(struct mp_store *store, const struct bucket *bucket, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_BUCKET_SET,
			      "UPDATE bucket SET first_day = ?2, last_day = ?3, nr_samples = ?4,"
			      " nr_bytes = ?5 WHERE key = ?1",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket->key);
	sqlite3_bind_int64(stmt, 2, bucket->first_day);
	sqlite3_bind_int64(stmt, 3, bucket->last_day);
	sqlite3_bind_int64(stmt, 4, (int64_t)bucket->nr_samples);
	sqlite3_bind_int64(stmt, 5, (int64_t)bucket->nr_bytes);
	return mp_store_run(store, stmt, "write", err);
}

static int run_with_keys(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t a,
			 int64_t b, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, which, sql, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, a);
	if (sqlite3_bind_parameter_count(stmt) > 1)
		sqlite3_bind_int64(stmt, 2, b);
	return mp_store_run(store, stmt, "write", err);
}

static int list_chunks(struct mp_store *store, int64_t bucket, sqlite3_stmt **stmt,
		       struct mp_err *err)
{
	int r = mp_store_stmt(store, MP_STMT_CHUNK_LIST,
			      "SELECT chunk, checksum, data, key FROM chunk WHERE bucket = ?1"
			      " ORDER BY chunk",
			      stmt, err);

	if (!r)
		sqlite3_bind_int64(*stmt, 1, bucket);
	return r;
}

/*
 * The next chunk of a listing, checked: order too, since a damaged tree could lead round for
 * ever. Return: 1 and @out/@nr/@size, 0 at the end, -errno.
 */
static int next_chunk(struct mp_store *store, sqlite3_stmt *stmt, int64_t *chunk,
		      struct mp_ip_count *out, size_t *nr, size_t *size, struct mp_err *err)
{
	int64_t last = *chunk;
	int r = mp_store_step(store, stmt, "read", err);

	if (r <= 0)
		return r;
	*chunk = sqlite3_column_int64(stmt, 0);
	if (*chunk <= last || (uint64_t)*chunk > UINT64_MAX >> MP_CHUNK_SHIFT)
		r = mp_store_damaged(store, "chunks out of order", err);
	else
		r = decode_columns(store, stmt, 1, *chunk, out, nr, size, err);
	if (r < 0)
		sqlite3_reset(stmt);
	return r < 0 ? r : 1;
}

/* Merge bucket @from into @into, its neighbour in time. */
static int fold_bucket(struct mp_store *store, struct bucket *into, const struct bucket *from,
		       struct mp_err *err)
{
	struct mp_ip_count *ips;
	int64_t chunk = -1, grown = 0;
	sqlite3_stmt *stmt;
	size_t nr, size;
	int r, more;

	/* scratch.ips[] belongs to add_to_chunk(). */
	ips = malloc(MP_CHUNK_SIZE * sizeof(*ips));
	if (!ips)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = list_chunks(store, from->key, &stmt, err);
	while (!r) {
		more = next_chunk(store, stmt, &chunk, ips, &nr, &size, err);
		if (more <= 0) {
			r = more;
			break;
		}
		/* Reads the rows of @from and writes those of @into, so the cursor is safe. */
		r = add_to_chunk(store, into->key, chunk, ips, nr, &grown, err);
	}
	free(ips);
	if (r) {
		sqlite3_reset(stmt);
		return r;
	}
	r = run_with_keys(store, MP_STMT_CHUNK_DELETE, "DELETE FROM chunk WHERE bucket = ?1",
			  from->key, 0, err);
	if (!r)
		r = run_with_keys(store, MP_STMT_BUCKET_DELETE, "DELETE FROM bucket WHERE key = ?1",
				  from->key, 0, err);
	if (r)
		return r;
	into->last_day = from->last_day;
	into->nr_samples += from->nr_samples;
	into->nr_bytes += (uint64_t)grown;
	store->folded = true;
	if (into->nr_samples > INT64_MAX)
		return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples", store->path);
	return set_bucket(store, into, err);
}

static uint64_t budget_of(uint64_t text_size)
{
	return (BUDGET_FIXED + text_size / BUDGET_TEXT_DIVISOR) / 100 * BUDGET_FILL_PERCENT;
}

/* Fold the oldest days while they are beyond the horizon, or the module is over its budget. */
static int fold_old_days(struct mp_store *store, int64_t module, uint64_t text_size,
			 struct mp_err *err)
{
	struct bucket *buckets = NULL;
	uint64_t nr_bytes;
	size_t nr = 0;
	int r = read_buckets(store, module, &buckets, &nr, err);

	while (!r && nr > 1) {
		nr_bytes = 0;
		for (size_t i = 0; i < nr; i++)
			nr_bytes += buckets[i].nr_bytes;
		if (buckets[1].last_day > buckets[nr - 1].last_day - KEEP_DAYS &&
		    nr_bytes <= budget_of(text_size))
			break;
		r = fold_bucket(store, &buckets[0], &buckets[1], err);
		nr--;
		memmove(&buckets[1], &buckets[2], (nr - 1) * sizeof(*buckets));
	}
	free(buckets);
	return r;
}

/* The bucket that holds @day, made where there is none. */
static int bucket_of_day(struct mp_store *store, int64_t module, int64_t day, int64_t *key,
			 struct mp_err *err)
{
	struct bucket *buckets = NULL;
	size_t nr = 0, i;
	int r = read_buckets(store, module, &buckets, &nr, err);

	if (r)
		return r;
	for (i = nr; i-- > 0;) {
		if (buckets[i].first_day <= day && day <= buckets[i].last_day) {
			*key = buckets[i].key;
			break;
		}
	}
	free(buckets);
	return i == SIZE_MAX ? add_bucket(store, module, day, key, err) : 0;
}

/* ---- add, read ----------------------------------------------------------------------------- */

static int text_size_of(struct mp_store *store, int64_t module, uint64_t *text_size,
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

static int add_to_bucket(struct mp_store *store, int64_t bucket, const struct mp_ip_count *counts,
			 size_t nr, int64_t *grown, struct mp_err *err)
{
	for (size_t i = 0, end; i < nr; i = end) {
		uint64_t chunk = counts[i].vaddr >> MP_CHUNK_SHIFT;
		int r;

		for (end = i + 1; end < nr && counts[end].vaddr >> MP_CHUNK_SHIFT == chunk; end++)
			;
		r = add_to_chunk(store, bucket, (int64_t)chunk, counts + i, end - i, grown, err);
		if (r)
			return r;
	}
	return 0;
}

static int add_counts(struct mp_store *store, int64_t module, int64_t when_s,
		      const struct mp_ip_count *counts, size_t nr, uint64_t nr_samples,
		      struct mp_err *err)
{
	int64_t bucket = 0, grown = 0;
	uint64_t text_size;
	sqlite3_stmt *stmt;
	int r = text_size_of(store, module, &text_size, err);

	if (!r)
		r = bucket_of_day(store, module, mp_day_of(when_s), &bucket, err);
	if (!r)
		r = add_to_bucket(store, bucket, counts, nr, &grown, err);
	if (!r)
		r = mp_store_stmt(store, MP_STMT_BUCKET_GROW,
				  "UPDATE bucket SET nr_samples = nr_samples + ?2,"
				  " nr_bytes = nr_bytes + ?3 WHERE key = ?1",
				  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket);
	sqlite3_bind_int64(stmt, 2, (int64_t)nr_samples);
	sqlite3_bind_int64(stmt, 3, grown);
	r = mp_store_run(store, stmt, "write", err);
	return r ? r : fold_old_days(store, module, text_size, err);
}

int mp_store_add_counts(struct mp_store *store, int64_t module, int64_t when_s,
			const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	uint64_t nr_samples = 0;
	bool began;
	int r;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "counts of a time before 1970");
	for (size_t i = 0; i < nr; i++) {
		if (i && counts[i].vaddr <= counts[i - 1].vaddr)
			return mp_err_set(err, EINVAL, "counts must ascend by address");
		if (__builtin_add_overflow(nr_samples, counts[i].count, &nr_samples) ||
		    nr_samples > INT64_MAX)
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples",
					  store->path);
	}
	if (!nr_samples)
		return 0;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = add_counts(store, module, when_s, counts, nr, nr_samples, err);
	return mp_store_leave(store, began, r, err);
}

/* Append the bucket's counts to @all. */
static int read_bucket(struct mp_store *store, const struct bucket *bucket,
		       struct mp_ip_count **all, size_t *nr, struct mp_err *err)
{
	uint64_t nr_samples = 0;
	int64_t chunk = -1;
	sqlite3_stmt *stmt;
	size_t max = *nr, n, size;
	int r = list_chunks(store, bucket->key, &stmt, err);

	while (!r) {
		if (max - *nr < MP_CHUNK_SIZE) {
			size_t more = 2 * max + MP_CHUNK_SIZE;
			void *bigger = realloc(*all, more * sizeof(**all));

			if (!bigger) {
				sqlite3_reset(stmt);
				return mp_err_set(err, ENOMEM, "out of memory");
			}
			*all = bigger;
			max = more;
		}
		r = next_chunk(store, stmt, &chunk, *all + *nr, &n, &size, err);
		if (r <= 0)
			break;
		r = 0;
		for (size_t i = *nr; i < *nr + n; i++)
			nr_samples += (*all)[i].count;
		*nr += n;
	}
	if (!r && nr_samples != bucket->nr_samples)
		r = mp_store_damaged(store, "counts that do not add up", err);
	return r;
}

/* Merge bucket @b into the ascending array of *@nr; *@counts is replaced. */
static int merge_bucket(struct mp_store *store, const struct bucket *bucket,
			struct mp_ip_count **counts, size_t *nr, struct mp_err *err)
{
	struct mp_ip_count *more = NULL, *both;
	size_t nr_more = 0, nr_both;
	int r = read_bucket(store, bucket, &more, &nr_more, err);

	if (r || !*nr) {
		if (!r) {
			free(*counts);
			*counts = more;
			*nr = nr_more;
			return 0;
		}
		free(more);
		return r;
	}
	both = malloc((*nr + nr_more) * sizeof(*both));
	if (!both) {
		r = mp_err_set(err, ENOMEM, "out of memory");
	} else if (merge(*counts, *nr, more, nr_more, both, &nr_both)) {
		r = mp_store_damaged(store, "a count beyond 64 bits", err);
		free(both);
	} else {
		free(*counts);
		*counts = both;
		*nr = nr_both;
	}
	free(more);
	return r;
}

int mp_store_read_counts(struct mp_store *store, int64_t module, int64_t since_s,
			 struct mp_ip_count **out, size_t *nr, struct mp_err *err)
{
	struct mp_ip_count *counts = NULL;
	struct bucket *buckets = NULL;
	size_t n = 0, nr_buckets = 0;
	uint64_t text_size;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = text_size_of(store, module, &text_size, err);
	if (!r)
		r = read_buckets(store, module, &buckets, &nr_buckets, err);
	for (size_t i = 0; i < nr_buckets && !r; i++)
		if (mp_day_wanted(buckets[i].last_day, since_s))
			r = merge_bucket(store, &buckets[i], &counts, &n, err);
	free(buckets);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(counts);
		return r;
	}
	*out = counts;
	*nr = n;
	return 0;
}

int mp_store_sum_bucket(struct mp_store *store, int64_t bucket, uint64_t *nr_samples,
			uint64_t *nr_bytes, struct mp_err *err)
{
	size_t nr, size;
	int64_t chunk = -1;
	sqlite3_stmt *stmt;
	int r = need_ips(store, 0, MP_CHUNK_SIZE, err);

	*nr_samples = *nr_bytes = 0;
	if (!r)
		r = list_chunks(store, bucket, &stmt, err);
	if (r)
		return r;
	while ((r = next_chunk(store, stmt, &chunk, store->scratch.ips[0], &nr, &size, err)) > 0) {
		for (size_t i = 0; i < nr; i++)
			*nr_samples += store->scratch.ips[0][i].count;
		*nr_bytes += size + CHUNK_ROW_BYTES;
	}
	return r;
}
