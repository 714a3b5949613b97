// SPDX-License-Identifier: Apache-2.0
/*
 * store_module - the modules of the store: find, add, list. A module is identified by
 * (build-id, text hash), never by a path. Called by daemon and editor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_series.h"

#define ALL_BUCKETS_SQL                                                                            \
	"SELECT key, module, last_day, nr_samples, first_day FROM bucket ORDER BY key"
#define ALL_EDGE_BUCKETS_SQL                                                                       \
	"SELECT key, module, last_day, nr_transfers FROM edge_bucket ORDER BY key"
#define COLUMNS "key, build_id, text_hash, kind, path, text_size, first_s, last_s"

static int read_id(sqlite3_stmt *stmt, int column, struct mp_id *id)
{
	int len = sqlite3_column_bytes(stmt, column);
	const void *bytes = sqlite3_column_blob(stmt, column);

	memset(id, 0, sizeof(*id));
	if (len < 0 || len > MP_BUILD_ID_MAX || (len && !bytes))
		return -EBADMSG;
	if (len)
		memcpy(id->build_id, bytes, (size_t)len);
	id->build_id_len = (uint8_t)len;
	id->text_hash = (uint64_t)sqlite3_column_int64(stmt, column + 1);
	return 0;
}

static int read_module(struct mp_store *store, sqlite3_stmt *stmt, struct mp_module *out,
		       struct mp_err *err)
{
	int64_t kind = sqlite3_column_int64(stmt, 3), size = sqlite3_column_int64(stmt, 5);
	const char *path = (const char *)sqlite3_column_text(stmt, 4);

	memset(out, 0, sizeof(*out));
	out->key = sqlite3_column_int64(stmt, 0);
	if (read_id(stmt, 1, &out->id) || !path || size < 0 || kind < MP_MODULE_FILE ||
	    kind > MP_MODULE_VDSO)
		return mp_store_damaged(store, "an impossible module", err);
	out->kind = (enum mp_module_kind)kind;
	out->text_size = (uint64_t)size;
	out->first_s = sqlite3_column_int64(stmt, 6);
	out->last_s = sqlite3_column_int64(stmt, 7);
	out->path = strdup(path);
	return out->path ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

static void bind_id(sqlite3_stmt *stmt, int index, const struct mp_id *id)
{
	/* A build-id of no bytes is an empty blob: NULL would never equal itself. */
	sqlite3_bind_blob(stmt, index, id->build_id_len ? (const void *)id->build_id : "",
			  id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, index + 1, (int64_t)id->text_hash);
}

static int select_module(struct mp_store *store, const struct mp_id *id, struct mp_module *out,
			 struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (id->build_id_len > MP_BUILD_ID_MAX)
		return mp_err_set(err, EINVAL, "build-id of %u bytes", id->build_id_len);
	r = mp_store_stmt(store, MP_STMT_MODULE_FIND,
			  "SELECT " COLUMNS " FROM module WHERE build_id = ?1 AND text_hash = ?2",
			  &stmt, err);
	if (r)
		return r;
	bind_id(stmt, 1, id);
	r = mp_store_step(store, stmt, "read", err);
	if (r > 0) {
		r = read_module(store, stmt, out, err);
		sqlite3_reset(stmt);
		return r;
	}
	return r ? r : mp_err_set(err, ENOENT, "%s: no such module", store->path);
}

static int add_module(struct mp_store *store, const struct mp_id *id, enum mp_module_kind kind,
		      const char *path, uint64_t text_size, int64_t now_s, int64_t *key,
		      struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_MODULE_ADD,
		"INSERT INTO module(build_id, text_hash, kind, path, text_size, first_s,"
		" last_s) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6)",
		&stmt, err);

	if (r)
		return r;
	bind_id(stmt, 1, id);
	sqlite3_bind_int64(stmt, 3, kind);
	sqlite3_bind_text(stmt, 4, path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 5, (int64_t)text_size);
	sqlite3_bind_int64(stmt, 6, now_s);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		*key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int see_module(struct mp_store *store, const struct mp_module *module, const char *path,
		      uint64_t text_size, int64_t now_s, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (now_s <= module->last_s && now_s >= module->first_s && text_size == module->text_size &&
	    !strcmp(path, module->path))
		return 0;
	r = mp_store_stmt(store, MP_STMT_MODULE_SEEN,
			  "UPDATE module SET path = ?2, text_size = ?3, first_s = min(first_s, ?4),"
			  " last_s = max(last_s, ?4) WHERE key = ?1",
			  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module->key);
	sqlite3_bind_text(stmt, 2, path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, (int64_t)text_size);
	sqlite3_bind_int64(stmt, 4, now_s);
	return mp_store_run(store, stmt, "write", err);
}

int mp_store_put_module(struct mp_store *store, const struct mp_id *id, enum mp_module_kind kind,
			const char *path, uint64_t text_size, int64_t now_s, int64_t *key,
			struct mp_err *err)
{
	struct mp_module module = {0};
	bool began;
	int r;

	if (text_size > INT64_MAX)
		return mp_err_set(err, EINVAL, "%s: impossible text size", path);
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = select_module(store, id, &module, err);
	if (r == -ENOENT) {
		r = add_module(store, id, kind, path, text_size, now_s, key, err);
	} else if (!r) {
		*key = module.key;
		r = see_module(store, &module, path, text_size, now_s, err);
	}
	free(module.path);
	return mp_store_leave(store, began, r, err);
}

static int compare_key(const void *a, const void *b)
{
	const struct mp_module *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int compare_samples(const void *a, const void *b)
{
	const struct mp_module *x = a, *y = b;

	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	if (x->nr_transfers != y->nr_transfers)
		return x->nr_transfers < y->nr_transfers ? 1 : -1;
	return compare_key(a, b);
}

/*
 * Adds up the counts of the buckets that @since_s includes, into the member at @offset;
 * @modules ascend by key.
 */
static int sum_buckets(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t since_s,
		       struct mp_module *modules, size_t nr, size_t offset, struct mp_err *err)
{
	int64_t last = INT64_MIN;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, which, sql, &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct mp_module key = {.key = sqlite3_column_int64(stmt, 1)}, *module;
		int64_t total = sqlite3_column_int64(stmt, 3);

		/* Check the order: a damaged tree could otherwise loop for ever. */
		module = nr ? bsearch(&key, modules, nr, sizeof(*modules), compare_key) : NULL;
		if (sqlite3_column_int64(stmt, 0) <= last || !module || total < 0) {
			sqlite3_reset(stmt);
			return mp_store_damaged(store, "counts without a module", err);
		}
		last = sqlite3_column_int64(stmt, 0);
		if (mp_day_wanted(sqlite3_column_int64(stmt, 2), since_s))
			*(uint64_t *)((char *)module + offset) += (uint64_t)total;
	}
	return r;
}

int mp_store_period_start(struct mp_store *store, int64_t since_s, int64_t *start_s,
			  struct mp_err *err)
{
	int64_t last = INT64_MIN, first_day = INT64_MAX;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_BUCKET_ALL, ALL_BUCKETS_SQL, &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		int64_t day = sqlite3_column_int64(stmt, 4);

		if (sqlite3_column_int64(stmt, 0) <= last) {
			sqlite3_reset(stmt);
			return mp_store_damaged(store, "days out of order", err);
		}
		last = sqlite3_column_int64(stmt, 0);
		if (mp_day_wanted(sqlite3_column_int64(stmt, 2), since_s) && day < first_day)
			first_day = day;
	}
	if (r)
		return r;
	*start_s = 0;
	if (first_day != INT64_MAX &&
	    __builtin_mul_overflow(first_day, MP_SECONDS_PER_DAY, start_s))
		return mp_store_damaged(store, "an impossible day", err);
	return 0;
}

static int read_modules(struct mp_store *store, struct mp_module **out, size_t *nr,
			struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_MODULE_LIST,
			      "SELECT " COLUMNS " FROM module ORDER BY key", &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(modules, max, n + 1, err);
		if (r)
			break;
		r = read_module(store, stmt, &modules[n], err);
		if (r)
			break;
		n++;
		if (n > 1 && modules[n - 1].key <= modules[n - 2].key) {
			r = mp_store_damaged(store, "modules out of order", err);
			break;
		}
	}
	sqlite3_reset(stmt);
	if (r) {
		mp_store_free_modules(modules, n);
		return r;
	}
	*out = modules;
	*nr = n;
	return 0;
}

int mp_store_list_modules(struct mp_store *store, int64_t since_s, struct mp_module **out,
			  size_t *nr, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t n = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = read_modules(store, &modules, &n, err);
	if (!r)
		r = sum_buckets(store, MP_STMT_BUCKET_ALL, ALL_BUCKETS_SQL, since_s, modules, n,
				offsetof(struct mp_module, nr_samples), err);
	if (!r)
		r = sum_buckets(store, MP_STMT_EDGE_BUCKET_ALL, ALL_EDGE_BUCKETS_SQL, since_s,
				modules, n, offsetof(struct mp_module, nr_transfers), err);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		mp_store_free_modules(modules, n);
		return r;
	}
	if (n)
		qsort(modules, n, sizeof(*modules), compare_samples);
	*out = modules;
	*nr = n;
	return 0;
}

int mp_store_find_module(struct mp_store *store, const struct mp_id *id, struct mp_module *out,
			 struct mp_err *err)
{
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	memset(out, 0, sizeof(*out));
	r = select_module(store, id, out, err);
	if (!r)
		r = mp_series_total(store, &mp_series_ip_counts, out->key, &out->nr_samples, err);
	if (!r)
		r = mp_series_total(store, &mp_series_edges, out->key, &out->nr_transfers, err);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(out->path);
		out->path = NULL;
	}
	return r;
}

void mp_store_free_modules(struct mp_module *modules, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(modules[i].path);
	free(modules);
}
