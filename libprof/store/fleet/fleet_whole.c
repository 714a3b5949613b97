// SPDX-License-Identifier: Apache-2.0
/* fleet_whole - paths and trees of some days, without what is not this database's own; see fleet_whole.h. */
#include "libprof/store/fleet/fleet_whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/context/context_codec.h"
#include "libprof/context/context_pack.h"
#include "libprof/store/store_codec.h"
#include "libprof/store/store_path_list.h"
#include "libprof/store/store_paths.h"

static const char not_there[] = "a fleet's paths or contexts that its days do not have";

/* ---- the base ------------------------------------------------------------------------------ */

struct rows {
	mp_fleet_row_fn *fn;
	void *arg;
};

static int give_row(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	const struct rows *rows = arg;
	const uint8_t *data;
	size_t size;
	int r = mp_fleet_bytes(store, stmt, 0, &data, &size, err);

	return r ? r
		 : rows->fn(rows->arg, sqlite3_column_int64(stmt, 2),
			    (uint64_t)sqlite3_column_int64(stmt, 3), data, size, err);
}

/* Calls @fn for the rows of the base. @origin: -1: all. */
static int each_base(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		     const struct mp_span *span, int origin, mp_fleet_row_fn *fn, void *arg,
		     struct mp_err *err)
{
	struct rows rows = {fn, arg};

	return mp_fleet_each(store,
			     "SELECT checksum, data, chunk, total FROM fleet_base"
			     " WHERE module = ?1 AND kind = ?2 AND first_day >= ?3"
			     " AND last_day <= ?4 AND (?5 < 0 OR origin = ?5)",
			     give_row, &rows, err, module, kind, span->first_day, span->last_day,
			     origin);
}

/* ---- trees --------------------------------------------------------------------------------- */

static int decode_tree(struct mp_store *store, const uint8_t *data, size_t size, uint64_t total,
		       struct mp_context_tree *out, struct mp_err *err)
{
	struct mp_err why;
	int r = mp_context_decode(data, size, out, &why);

	if (r == -EBADMSG)
		return mp_store_damaged(store, why.msg, err);
	if (r)
		return mp_err_set(err, -r, "%s", why.msg);
	if (out->nodes[0].total == total)
		return 0;
	mp_context_tree_fini(out);
	return mp_store_damaged(store, "a fleet's contexts that do not add up", err);
}

struct subtraction {
	struct mp_store *store;
	struct mp_context_tree *tree; /* or */
	struct mp_path_count *paths;
	size_t nr_paths;
};

static int take_tree(void *arg, int64_t chunk, uint64_t total, const uint8_t *data, size_t size,
		     struct mp_err *err)
{
	struct subtraction *s = arg;
	struct mp_context_tree what;
	int r = chunk ? mp_store_damaged(s->store, not_there, err)
		      : decode_tree(s->store, data, size, total, &what, err);

	if (r)
		return r;
	r = mp_context_subtract(s->tree, &what);
	mp_context_tree_fini(&what);
	if (r == -EINVAL)
		return mp_store_damaged(s->store, not_there, err);
	return r ? mp_err_set(err, -r, "%s: %s", s->store->path, strerror(-r)) : 0;
}

/* The tree of a bucket, without the base of @origin. Ownership: mp_context_tree_fini(), in any case. */
static int read_tree(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		     const struct mp_bucket *bucket, int origin, struct mp_context_tree *out,
		     struct mp_err *err)
{
	const struct mp_span span = {bucket->first_day, bucket->last_day, false};
	struct subtraction s = {.store = store, .tree = out};
	int r = mp_context_tree_init(out);

	if (r)
		return mp_err_code(err, -r);
	r = mp_contexts_read_row(store, mp_fleet_table(kind), bucket, out, err);
	return r ? r : each_base(store, kind, module, &span, origin, take_tree, &s, err);
}

static int each_tree(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		     const struct mp_bucket *bucket, size_t max, mp_fleet_row_fn *fn, void *arg,
		     struct mp_err *err)
{
	struct mp_context_tree tree;
	uint8_t *data;
	size_t size;
	int r = read_tree(store, kind, module, bucket, -1, &tree, err);

	if (!r && tree.nodes[0].total) {
		r = max ? mp_context_encode_within(&tree, max, &data, &size)
			: mp_context_pack(&tree, &data, &size);
		if (r) {
			mp_err_code(err, -r);
		} else {
			r = fn(arg, 0, tree.nodes[0].total, data, size, err);
			free(data);
		}
	}
	mp_context_tree_fini(&tree);
	return r;
}

/* ---- paths --------------------------------------------------------------------------------- */

static int decode_paths(struct mp_store *store, int64_t chunk, const uint8_t *data, size_t size,
			uint64_t total, struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	*out = calloc(size / MP_FLEET_PATH_MIN + 1, sizeof(**out));
	if (!*out)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!mp_fleet_paths_decode(chunk, data, size, *out, nr) &&
	    mp_fleet_paths_sum(*out, *nr) == total)
		return 0;
	free(*out);
	*out = NULL;
	return mp_store_damaged(store, "malformed paths of a fleet", err);
}

static int take_paths(void *arg, int64_t chunk, uint64_t total, const uint8_t *data, size_t size,
		      struct mp_err *err)
{
	struct subtraction *s = arg;
	struct mp_path_count *what;
	size_t nr;
	int r = decode_paths(s->store, chunk, data, size, total, &what, &nr, err);

	if (!r && !mp_fleet_paths_subtract(s->paths, &s->nr_paths, what, nr))
		r = mp_store_damaged(s->store, not_there, err);
	free(what);
	return r;
}

static int read_paths(struct mp_store *store, int64_t module, const struct mp_bucket *bucket,
		      int origin, struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	const struct mp_span span = {bucket->first_day, bucket->last_day, false};
	struct subtraction s = {.store = store};
	int r = mp_store_read_path_span(store, module, &span, &s.paths, &s.nr_paths, err);

	if (!r)
		r = each_base(store, MP_FLEET_PATHS, module, &span, origin, take_paths, &s, err);
	*out = s.paths;
	*nr = s.nr_paths;
	return r;
}

struct placed {
	struct mp_path_count path;
	int64_t chunk;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->chunk != y->chunk)
		return x->chunk < y->chunk ? -1 : 1;
	return mp_path_compare_keys(&x->path, &y->path);
}

/* Sorts @paths by chunks. @chunks: gets the chunk of each. */
static int sort_by_chunk(struct mp_path_count *paths, size_t nr, int64_t *chunks)
{
	struct placed *placed = calloc(nr + 1, sizeof(*placed));

	if (!placed)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		placed[i] = (struct placed){paths[i], mp_fleet_path_chunk(&paths[i])};
	if (nr)
		qsort(placed, nr, sizeof(*placed), compare_placed);
	for (size_t i = 0; i < nr; i++) {
		paths[i] = placed[i].path;
		chunks[i] = placed[i].chunk;
	}
	free(placed);
	return 0;
}

int mp_fleet_each_path_chunk(struct mp_path_count *paths, size_t nr, mp_fleet_row_fn *fn, void *arg,
			     struct mp_err *err)
{
	int64_t *chunks = calloc(nr + 1, sizeof(*chunks));
	struct mp_varint_writer data = {0};
	int r = chunks ? sort_by_chunk(paths, nr, chunks) : -ENOMEM;

	for (size_t i = 0, end; i < nr && !r; i = end) {
		for (end = i + 1; end < nr && chunks[end] == chunks[i];)
			end++;
		data.size = 0;
		mp_fleet_paths_encode(paths + i, end - i, &data);
		r = data.failed ? -ENOMEM
				: fn(arg, chunks[i], mp_fleet_paths_sum(paths + i, end - i),
				     data.bytes, data.size, err);
	}
	if (r == -ENOMEM)
		mp_err_code(err, ENOMEM);
	free(chunks);
	free(data.bytes);
	return r;
}

static int each_path_chunk(struct mp_store *store, int64_t module, const struct mp_bucket *bucket,
			   mp_fleet_row_fn *fn, void *arg, struct mp_err *err)
{
	struct mp_path_count *paths = NULL;
	size_t nr = 0;
	int r = read_paths(store, module, bucket, -1, &paths, &nr, err);

	if (!r)
		r = mp_fleet_each_path_chunk(paths, nr, fn, arg, err);
	free(paths);
	return r;
}

/* ---- all kinds ------------------------------------------------------------------------------ */

static int each_chunk(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		      const struct mp_bucket *bucket, mp_fleet_row_fn *fn, void *arg,
		      struct mp_err *err)
{
	const struct mp_series *series = mp_fleet_series(kind);
	const struct mp_span span = {bucket->first_day, bucket->last_day, false};
	struct mp_store_array entries = {0}, bytes = {0};
	int64_t chunk = -1;
	sqlite3_stmt *stmt;
	size_t nr, size;
	int r = mp_series_chunk_list(store, series, bucket->key, &stmt, err);

	if (r)
		return r;
	while (!r && (r = mp_series_chunk_next(store, series, stmt, &chunk, &entries, 0, &nr, &size,
					       err)) > 0) {
		r = mp_fleet_base_take(store, kind, module, &span, chunk, entries.data, &nr, err);
		if (!r && nr)
			r = mp_store_array_reserve(&bytes, nr * series->entry_bytes_max, err);
		if (!r && nr)
			r = fn(arg, chunk, series->sum(entries.data, nr), bytes.data,
			       series->encode((uint64_t)chunk << MP_CHUNK_SHIFT, entries.data, nr,
					      bytes.data),
			       err);
	}
	sqlite3_reset(stmt);
	free(entries.data);
	free(bytes.data);
	return r;
}

int mp_fleet_each_row(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		      const struct mp_bucket *bucket, size_t tree_max, mp_fleet_row_fn *fn,
		      void *arg, struct mp_err *err)
{
	if (kind < MP_NR_FLEET_SERIES)
		return each_chunk(store, kind, module, bucket, fn, arg, err);
	return mp_fleet_is_tree(kind)
		       ? each_tree(store, kind, module, bucket, tree_max, fn, arg, err)
		       : each_path_chunk(store, module, bucket, fn, arg, err);
}

static int replace_paths(struct mp_store *store, int64_t module, const struct mp_bucket *bucket,
			 const struct mp_path_count *paths, size_t nr, struct mp_err *err)
{
	const struct mp_span span = {bucket->first_day, bucket->last_day, false};
	int r = mp_fleet_run(store, MP_NR_STMT, "DELETE FROM path WHERE bucket = ?1", NULL, 0, err,
			     bucket->key);

	if (!r)
		r = mp_fleet_run(store, MP_NR_STMT, "DELETE FROM path_bucket WHERE key = ?1", NULL,
				 0, err, bucket->key);
	if (r)
		return r;
	return mp_store_add_path_span(store, module, &span, paths, nr, err);
}

static int take_bucket(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		       const struct mp_bucket *bucket, struct mp_err *err)
{
	struct mp_path_count *paths = NULL;
	struct mp_context_tree tree;
	size_t nr = 0;
	int r;

	if (mp_fleet_is_tree(kind)) {
		r = read_tree(store, kind, module, bucket, MP_FLEET_PULLED, &tree, err);
		if (!r)
			r = mp_contexts_replace_row(store, mp_fleet_table(kind), module, bucket,
						    &tree, err);
		mp_context_tree_fini(&tree);
		return r;
	}
	r = read_paths(store, module, bucket, MP_FLEET_PULLED, &paths, &nr, err);
	if (!r)
		r = replace_paths(store, module, bucket, paths, nr, err);
	free(paths);
	return r;
}

int mp_fleet_take_whole(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
			const struct mp_span *span, struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t nr = 0, i = 0;
	int r = mp_fleet_buckets(store, kind, module, &buckets, &nr, err);

	while (!r && i < nr && buckets[i].last_day < span->last_day)
		i++;
	if (!r && (i == nr || buckets[i].first_day > span->first_day))
		r = mp_store_damaged(store, not_there, err);
	if (!r)
		r = take_bucket(store, kind, module, &buckets[i], err);
	free(buckets);
	return r;
}

int mp_fleet_check_whole(struct mp_store *store, enum mp_fleet_kind kind, int64_t chunk,
			 const uint8_t *data, size_t size, uint64_t total, struct mp_err *err)
{
	struct mp_path_count *paths;
	struct mp_context_tree tree;
	size_t nr;
	int r;

	if (mp_fleet_is_tree(kind)) {
		r = decode_tree(store, data, size, total, &tree, err);
		if (!r)
			mp_context_tree_fini(&tree);
		return r;
	}
	r = decode_paths(store, chunk, data, size, total, &paths, &nr, err);
	free(paths);
	return r;
}
