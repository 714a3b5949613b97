// SPDX-License-Identifier: Apache-2.0
/*
 * store_fingerprint - the table of fingerprints. Decides which module is another build of a
 * file.
 * Called by morph-optimize and morph-stats, and by store_merge and store_check.
 */
#include "libprof/store/store_fingerprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "libprof/store/store_private.h"

static int read_row(struct mp_store *store, int64_t module, sqlite3_stmt **out, struct mp_err *err)
{
	int r = mp_store_stmt(store, MP_STMT_FINGERPRINT_READ,
			      "SELECT made_s, checksum, data FROM fingerprint WHERE module = ?1",
			      out, err);

	if (r)
		return r;
	sqlite3_bind_int64(*out, 1, module);
	r = mp_store_step(store, *out, "read", err);
	if (r > 0)
		return 0;
	return r ? r : mp_err_set(err, ENOENT, "%s: no fingerprint of this module", store->path);
}

static int write_row(struct mp_store *store, int64_t module, int64_t made_s, const uint8_t *bytes,
		     size_t size, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (size > MP_FINGERPRINT_BYTES_MAX)
		return mp_err_set(err, EFBIG, "%s: a fingerprint of %zu bytes", store->path, size);
	r = mp_store_stmt(store, MP_STMT_FINGERPRINT_SET,
			  "INSERT OR REPLACE INTO fingerprint(module, made_s, checksum, data)"
			  " VALUES(?1, ?2, ?3, ?4)",
			  &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, made_s);
	sqlite3_bind_int64(stmt, 3, (int64_t)(uint32_t)XXH3_64bits(bytes, size));
	sqlite3_bind_blob64(stmt, 4, bytes, size, SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

int mp_store_put_fingerprint(struct mp_store *store, int64_t module, int64_t now_s,
			     const struct mp_fingerprint *print, size_t *nr_bytes,
			     struct mp_err *err)
{
	uint8_t *bytes = NULL;
	size_t size = 0;
	bool began = false;
	int r = mp_fingerprint_encode(print, &bytes, &size, err);

	if (!r)
		r = mp_store_enter(store, &began, err);
	if (!r) {
		r = write_row(store, module, now_s, bytes, size, err);
		r = mp_store_leave(store, began, r, err);
	}
	free(bytes);
	if (!r && nr_bytes)
		*nr_bytes = size;
	return r;
}

/* The row's bytes, after the checksum was compared. They are valid until the statement is reset. */
static int row_bytes(struct mp_store *store, sqlite3_stmt *stmt, const uint8_t **bytes,
		     size_t *size, struct mp_err *err)
{
	*bytes = sqlite3_column_blob(stmt, 2);
	*size = (size_t)sqlite3_column_bytes(stmt, 2);
	if (!*bytes || *size > MP_FINGERPRINT_BYTES_MAX || sqlite3_column_int64(stmt, 0) < 0 ||
	    sqlite3_column_int64(stmt, 1) != (int64_t)(uint32_t)XXH3_64bits(*bytes, *size))
		return mp_store_damaged(store, "a fingerprint with a wrong checksum", err);
	return 0;
}

int mp_store_read_fingerprint(struct mp_store *store, int64_t module, struct mp_fingerprint *out,
			      struct mp_err *err)
{
	const uint8_t *bytes;
	sqlite3_stmt *stmt;
	struct mp_err why;
	size_t size;
	int r = read_row(store, module, &stmt, err);

	*out = (struct mp_fingerprint){0};
	if (r)
		return r;
	r = row_bytes(store, stmt, &bytes, &size, err);
	if (!r) {
		r = mp_fingerprint_decode(bytes, size, out, &why);
		if (r == -EBADMSG)
			r = mp_store_damaged(store, why.msg, err);
		else if (r)
			mp_err_set(err, -r, "%s", why.msg);
	}
	sqlite3_reset(stmt);
	return r;
}

int mp_store_fingerprint_time(struct mp_store *store, int64_t module, int64_t *made_s,
			      struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = read_row(store, module, &stmt, err);

	*made_s = 0;
	if (r)
		return r == -ENOENT ? 0 : r;
	*made_s = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return 0;
}

/* ---- another build -------------------------------------------------------------------------- */

/* Length of a name without the version behind ".so". */
static size_t stem_length(const char *name)
{
	const char *so = strstr(name, ".so.");

	return so ? (size_t)(so - name) + 3 : strlen(name);
}

/* Similarity of two names, 3 at most; 0: another program. */
static int how_close(const char *a, const char *b)
{
	const char *x = basename(a), *y = basename(b);

	if (!strcmp(a, b))
		return 3;
	if (!strcmp(x, y))
		return 2;
	return *x && stem_length(x) == stem_length(y) && !strncmp(x, y, stem_length(x)) &&
	       strstr(x, ".so.") && strstr(y, ".so.");
}

int mp_store_find_other_build(struct mp_store *store, const struct mp_id *id, const char *path,
			      struct mp_module *out, struct mp_err *err)
{
	struct mp_module *modules = NULL, *best = NULL;
	size_t nr = 0;
	int best_close = 0;
	int r = mp_store_list_modules(store, 0, &modules, &nr, err);

	*out = (struct mp_module){0};
	for (size_t i = 0; i < nr && !r; i++) {
		int close = how_close(path, modules[i].path);
		int64_t made_s;

		if (modules[i].kind != MP_MODULE_FILE || mp_id_equal(&modules[i].id, id) ||
		    !close || !(modules[i].nr_samples || modules[i].nr_transfers) ||
		    close < best_close ||
		    (close == best_close && modules[i].last_s <= best->last_s))
			continue;
		r = mp_store_fingerprint_time(store, modules[i].key, &made_s, err);
		if (r || !made_s)
			continue;
		best = &modules[i];
		best_close = close;
	}
	if (!r && best) {
		*out = *best;
		best->path = NULL;
	} else if (!r) {
		r = mp_err_set(err, ENOENT, "%s: no other build of %s", store->path, path);
	}
	mp_store_free_modules(modules, nr);
	return r;
}

/* ---- merge, check --------------------------------------------------------------------------- */

int mp_store_copy_fingerprint(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
			      struct mp_err *err)
{
	const uint8_t *bytes;
	sqlite3_stmt *stmt;
	int64_t have_s = 0;
	size_t size;
	int r = mp_store_fingerprint_time(out, to, &have_s, err);

	if (!r)
		r = read_row(in, from, &stmt, err);
	if (r)
		return r == -ENOENT ? 0 : r;
	r = row_bytes(in, stmt, &bytes, &size, err);
	if (!r && sqlite3_column_int64(stmt, 0) > have_s)
		r = write_row(out, to, sqlite3_column_int64(stmt, 0), bytes, size, err);
	sqlite3_reset(stmt);
	return r;
}

int mp_store_check_fingerprints(struct mp_store *store, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int r = mp_store_check_none(store,
				    "SELECT count(*) FROM fingerprint"
				    " WHERE module NOT IN (SELECT key FROM module)",
				    "a fingerprint without a module", err);

	if (r)
		return r;
	r = mp_store_list_modules(store, 0, &modules, &nr, err);
	for (size_t i = 0; i < nr && !r; i++) {
		struct mp_fingerprint print;

		r = mp_store_read_fingerprint(store, modules[i].key, &print, err);
		mp_fingerprint_fini(&print);
		r = r == -ENOENT ? 0 : r;
	}
	mp_store_free_modules(modules, nr);
	return r;
}
