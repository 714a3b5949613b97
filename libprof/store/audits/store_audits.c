// SPDX-License-Identifier: Apache-2.0
/* store_audits - the tables program_audit, ..._effect and ..._point; see store_audits.h. */
#include "libprof/store/audits/store_audits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"

/* ---- writing ------------------------------------------------------------------------------- */

/* The largest integer that the database holds stands for all above it. */
static void bind_nr(sqlite3_stmt *stmt, int column, uint64_t nr)
{
	sqlite3_bind_int64(stmt, column, nr > INT64_MAX ? INT64_MAX : (int64_t)nr);
}

static void bind_id(sqlite3_stmt *stmt, int column, const struct mp_id *id)
{
	sqlite3_bind_blob(stmt, column, id->build_id_len ? (const void *)id->build_id : "",
			  id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, column + 1, (int64_t)id->text_hash);
}

static int put_header(struct mp_store *store, struct mp_stored_audit *a, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_AUDIT_PUT,
			      "INSERT OR REPLACE INTO program_audit(key, table_hash, build_id,"
			      " text_hash, original_build_id, original_text_hash, path, machine,"
			      " alpha, start_s, last_s, nr_functions, nr_lost, nr_torn, nr_foreign)"
			      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
			      " ?15)",
			      &stmt, err);

	if (r)
		return r;
	if (a->key)
		sqlite3_bind_int64(stmt, 1, a->key);
	sqlite3_bind_int64(stmt, 2, (int64_t)a->table_hash);
	bind_id(stmt, 3, &a->id);
	bind_id(stmt, 5, &a->original);
	sqlite3_bind_text(stmt, 7, a->path ? a->path : "", -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 8, a->machine, -1, SQLITE_STATIC);
	sqlite3_bind_double(stmt, 9, a->alpha);
	sqlite3_bind_int64(stmt, 10, a->start_s);
	sqlite3_bind_int64(stmt, 11, a->last_s);
	sqlite3_bind_int64(stmt, 12, a->nr_functions);
	bind_nr(stmt, 13, a->lost);
	bind_nr(stmt, 14, a->torn);
	bind_nr(stmt, 15, a->nr_foreign);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		a->key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int put_effect(struct mp_store *store, int64_t key, const struct mp_stored_effect *stored,
		      struct mp_err *err)
{
	const struct mp_audit_effect *e = &stored->effect;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_AUDIT_EFFECT_PUT,
		"INSERT INTO program_audit_effect(audit, function, vaddr, verdict,"
		" earlier, pairs, decided_at, estimate, lowest, highest, preempted,"
		" abandoned, signalled, empty, alone, wrong) VALUES(?1, ?2, ?3, ?4, ?5,"
		" ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
		&stmt, err);

	_Static_assert(MP_NR_PAIR_DROPS == 6, "one column each, in the order of the enum");
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, key);
	sqlite3_bind_int64(stmt, 2, e->function);
	sqlite3_bind_int64(stmt, 3, (int64_t)stored->vaddr);
	sqlite3_bind_int64(stmt, 4, e->verdict);
	sqlite3_bind_int64(stmt, 5, e->earlier);
	bind_nr(stmt, 6, e->pairs);
	bind_nr(stmt, 7, e->decided_at);
	sqlite3_bind_double(stmt, 8, e->estimate);
	sqlite3_bind_double(stmt, 9, e->lowest);
	sqlite3_bind_double(stmt, 10, e->highest);
	for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
		bind_nr(stmt, 11 + i, e->drops[i]);
	return mp_store_run(store, stmt, "write", err);
}

static int put_point(struct mp_store *store, int64_t key, uint32_t function,
		     const struct mp_point_sums *p, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_AUDIT_POINT_PUT,
		"INSERT INTO program_audit_point(audit, function, point, pairs, ticks_a,"
		" rounds_a, ticks_b, rounds_b) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
		&stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, key);
	sqlite3_bind_int64(stmt, 2, function);
	sqlite3_bind_int64(stmt, 3, p->point);
	bind_nr(stmt, 4, p->pairs);
	for (int v = 0; v < MP_AUDIT_NR_VERSIONS; v++) {
		bind_nr(stmt, 5 + 2 * v, p->ticks[v]);
		bind_nr(stmt, 6 + 2 * v, p->rounds[v]);
	}
	return mp_store_run(store, stmt, "write", err);
}

static int run_with(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t value,
		    struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, which, sql, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, value);
	return mp_store_run(store, stmt, "write", err);
}

#define TEXT_OF(number)	 TEXT_OF_(number)
#define TEXT_OF_(number) #number

/* Removes the rows of an audit. */
static int delete_rows(struct mp_store *store, int64_t key, struct mp_err *err)
{
	int r = run_with(store, MP_STMT_AUDIT_EFFECT_DELETE,
			 "DELETE FROM program_audit_effect WHERE audit = ?1", key, err);

	if (!r)
		r = run_with(store, MP_STMT_AUDIT_POINT_DELETE,
			     "DELETE FROM program_audit_point WHERE audit = ?1", key, err);
	return r;
}

/* Keeps the newest audits of a table. The last statements remove the rows of the others. */
static int drop_old(struct mp_store *store, uint64_t table_hash, struct mp_err *err)
{
	int r = run_with(store, MP_STMT_AUDIT_DROP,
			 "DELETE FROM program_audit WHERE table_hash = ?1 AND key NOT IN"
			 " (SELECT key FROM program_audit WHERE table_hash = ?1 ORDER BY last_s"
			 " DESC, key DESC LIMIT " TEXT_OF(MP_AUDITS_KEPT) ")",
			 (int64_t)table_hash, err);

	if (!r)
		r = run_with(store, MP_STMT_AUDIT_EFFECT_DROP,
			     "DELETE FROM program_audit_effect WHERE audit NOT IN"
			     " (SELECT key FROM program_audit)",
			     0, err);
	if (!r)
		r = run_with(store, MP_STMT_AUDIT_POINT_DROP,
			     "DELETE FROM program_audit_point WHERE audit NOT IN"
			     " (SELECT key FROM program_audit)",
			     0, err);
	return r;
}

int mp_store_put_audit(struct mp_store *store, struct mp_stored_audit *audit, struct mp_err *err)
{
	bool began;
	int r;

	if (!audit->nr_functions || audit->nr_functions > MP_AUDIT_MAX_FUNCTIONS)
		return mp_err_set(err, EINVAL, "an audit of too many functions, or of none");
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = put_header(store, audit, err);
	if (!r)
		r = delete_rows(store, audit->key, err);
	for (uint32_t f = 0; f < audit->nr_functions && !r; f++) {
		const struct mp_audit_effect *effect = &audit->effects[f].effect;

		r = put_effect(store, audit->key, &audit->effects[f], err);
		for (uint32_t p = 0; p < effect->nr_points && !r; p++)
			r = put_point(store, audit->key, effect->function, &effect->points[p], err);
	}
	if (!r)
		r = drop_old(store, audit->table_hash, err);
	return mp_store_leave(store, began, r, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool read_id(sqlite3_stmt *stmt, int column, struct mp_id *id)
{
	int size = sqlite3_column_bytes(stmt, column);
	const void *bytes = sqlite3_column_blob(stmt, column);

	if (size < 0 || size > MP_BUILD_ID_MAX)
		return false;
	id->build_id_len = (uint8_t)size;
	if (size)
		memcpy(id->build_id, bytes, (size_t)size);
	id->text_hash = (uint64_t)sqlite3_column_int64(stmt, column + 1);
	return true;
}

/* Return: false if the number is below 0. */
static bool read_nr(sqlite3_stmt *stmt, int column, uint64_t *nr)
{
	int64_t value = sqlite3_column_int64(stmt, column);

	*nr = (uint64_t)value;
	return value >= 0;
}

static int read_header(struct mp_store *store, sqlite3_stmt *stmt, struct mp_stored_audit *a,
		       struct mp_err *err)
{
	const char *path = (const char *)sqlite3_column_text(stmt, 6);
	const char *machine = (const char *)sqlite3_column_text(stmt, 7);
	uint64_t nr_functions;

	a->key = sqlite3_column_int64(stmt, 0);
	a->table_hash = (uint64_t)sqlite3_column_int64(stmt, 1);
	a->alpha = sqlite3_column_double(stmt, 8);
	a->start_s = sqlite3_column_int64(stmt, 9);
	a->last_s = sqlite3_column_int64(stmt, 10);
	snprintf(a->machine, sizeof(a->machine), "%s", machine ? machine : "");
	if (!read_id(stmt, 2, &a->id) || !read_id(stmt, 4, &a->original) ||
	    !read_nr(stmt, 11, &nr_functions) || !read_nr(stmt, 12, &a->lost) ||
	    !read_nr(stmt, 13, &a->torn) || !read_nr(stmt, 14, &a->nr_foreign) || !nr_functions ||
	    nr_functions > MP_AUDIT_MAX_FUNCTIONS)
		return mp_store_damaged(store, "an impossible audit", err);
	a->nr_functions = (uint32_t)nr_functions;
	a->path = strdup(path ? path : "");
	a->effects = calloc(nr_functions, sizeof(*a->effects));
	if (!a->path || !a->effects)
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int read_effect(struct mp_store *store, sqlite3_stmt *stmt, struct mp_stored_audit *a,
		       uint32_t f, struct mp_err *err)
{
	struct mp_audit_effect *e = &a->effects[f].effect;
	int64_t verdict = sqlite3_column_int64(stmt, 2), earlier = sqlite3_column_int64(stmt, 3);
	bool fine = sqlite3_column_int64(stmt, 0) == f && verdict >= MP_AUDIT_VERDICT_NONE &&
		    verdict <= MP_AUDIT_VERDICT_B && !(earlier & ~1);

	e->function = f;
	a->effects[f].vaddr = (uint64_t)sqlite3_column_int64(stmt, 1);
	e->verdict = (enum mp_audit_verdict)verdict;
	e->earlier = earlier;
	fine = fine && read_nr(stmt, 4, &e->pairs) && read_nr(stmt, 5, &e->decided_at);
	e->estimate = sqlite3_column_double(stmt, 6);
	e->lowest = sqlite3_column_double(stmt, 7);
	e->highest = sqlite3_column_double(stmt, 8);
	for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
		fine = fine && read_nr(stmt, 9 + i, &e->drops[i]);
	if (!fine || !isfinite(e->estimate) || isnan(e->lowest) || isnan(e->highest))
		return mp_store_damaged(store, "an impossible effect of an audit", err);
	return 0;
}

static int read_effects(struct mp_store *store, struct mp_stored_audit *a, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	uint32_t f = 0;
	int r = mp_store_stmt(
		store, MP_STMT_AUDIT_EFFECT_LIST,
		"SELECT function, vaddr, verdict, earlier, pairs, decided_at, estimate,"
		" lowest, highest, preempted, abandoned, signalled, empty, alone, wrong"
		" FROM program_audit_effect WHERE audit = ?1 ORDER BY function",
		&stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, a->key);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = f < a->nr_functions
			    ? read_effect(store, stmt, a, f++, err)
			    : mp_store_damaged(store, "an audit of too many functions", err);
		if (r)
			break;
	}
	sqlite3_reset(stmt);
	if (!r && f != a->nr_functions)
		r = mp_store_damaged(store, "an audit without all of its functions", err);
	return r;
}

static int read_point(struct mp_store *store, sqlite3_stmt *stmt, struct mp_stored_audit *a,
		      struct mp_err *err)
{
	struct mp_audit_effect *e;
	struct mp_point_sums *p;
	uint64_t function, point;

	if (!read_nr(stmt, 0, &function) || function >= a->nr_functions ||
	    !read_nr(stmt, 1, &point) || point > UINT16_MAX ||
	    a->effects[function].effect.nr_points == MP_EFFECT_NR_POINTS)
		return mp_store_damaged(store, "an impossible timing point of an audit", err);
	e = &a->effects[function].effect;
	p = &e->points[e->nr_points++];
	p->point = (uint16_t)point;
	if (!read_nr(stmt, 2, &p->pairs) || !read_nr(stmt, 3, &p->ticks[MP_AUDIT_A]) ||
	    !read_nr(stmt, 4, &p->rounds[MP_AUDIT_A]) || !read_nr(stmt, 5, &p->ticks[MP_AUDIT_B]) ||
	    !read_nr(stmt, 6, &p->rounds[MP_AUDIT_B]))
		return mp_store_damaged(store, "an impossible timing point of an audit", err);
	return 0;
}

static int read_points(struct mp_store *store, struct mp_stored_audit *a, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_AUDIT_POINT_LIST,
			      "SELECT function, point, pairs, ticks_a, rounds_a, ticks_b, rounds_b"
			      " FROM program_audit_point WHERE audit = ?1 ORDER BY function, point",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, a->key);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = read_point(store, stmt, a, err);
		if (r)
			break;
	}
	sqlite3_reset(stmt);
	return r;
}

static int read_headers(struct mp_store *store, struct mp_stored_audit **out, size_t *nr,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	size_t max = 0;
	int r = mp_store_stmt(store, MP_STMT_AUDIT_LIST,
			      "SELECT key, table_hash, build_id, text_hash, original_build_id,"
			      " original_text_hash, path, machine, alpha, start_s, last_s,"
			      " nr_functions, nr_lost, nr_torn, nr_foreign FROM program_audit"
			      " ORDER BY last_s DESC, key DESC",
			      &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(*out, max, *nr + 1, err);
		if (r)
			break;
		memset(&(*out)[*nr], 0, sizeof(**out));
		r = read_header(store, stmt, &(*out)[(*nr)++], err);
		if (r)
			break;
	}
	sqlite3_reset(stmt);
	return r;
}

int mp_store_list_audits(struct mp_store *store, struct mp_stored_audit **out, size_t *nr,
			 struct mp_err *err)
{
	bool began;
	int r;

	*out = NULL;
	*nr = 0;
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = read_headers(store, out, nr, err);
	for (size_t i = 0; i < *nr && !r; i++) {
		r = read_effects(store, &(*out)[i], err);
		if (!r)
			r = read_points(store, &(*out)[i], err);
	}
	r = mp_store_leave(store, began, r, err);
	if (r) {
		mp_store_free_audits(*out, *nr);
		*out = NULL;
		*nr = 0;
	}
	return r;
}

void mp_store_free_audits(struct mp_stored_audit *audits, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(audits[i].path);
		free(audits[i].effects);
	}
	free(audits);
}

/* ---- merge, check -------------------------------------------------------------------------- */

static bool has_audit(const struct mp_stored_audit *audits, size_t nr,
		      const struct mp_stored_audit *audit)
{
	for (size_t i = 0; i < nr; i++)
		if (audits[i].table_hash == audit->table_hash &&
		    audits[i].start_s == audit->start_s &&
		    !strcmp(audits[i].machine, audit->machine) &&
		    audits[i].nr_functions == audit->nr_functions)
			return true;
	return false;
}

int mp_store_merge_audits(struct mp_store *out, struct mp_store *in, struct mp_err *err)
{
	struct mp_stored_audit *audits = NULL, *have = NULL;
	size_t nr = 0, nr_have = 0;
	int r = mp_store_list_audits(in, &audits, &nr, err);

	if (!r)
		r = mp_store_list_audits(out, &have, &nr_have, err);
	for (size_t i = nr; i-- > 0 && !r;) {
		if (has_audit(have, nr_have, &audits[i]))
			continue;
		audits[i].key = 0;
		r = mp_store_put_audit(out, &audits[i], err);
	}
	mp_store_free_audits(audits, nr);
	mp_store_free_audits(have, nr_have);
	return r;
}

int mp_store_check_audits(struct mp_store *store, struct mp_err *err)
{
	struct mp_stored_audit *audits = NULL;
	sqlite3_stmt *stmt;
	int64_t strays = 0;
	size_t nr = 0;
	int r = mp_store_list_audits(store, &audits, &nr, err);

	mp_store_free_audits(audits, nr);
	if (!r)
		r = mp_store_stmt(
			store, MP_STMT_AUDIT_STRAYS,
			"SELECT (SELECT count(*) FROM program_audit_effect WHERE audit NOT IN"
			" (SELECT key FROM program_audit)) + (SELECT count(*) FROM"
			" program_audit_point WHERE audit NOT IN (SELECT key FROM"
			" program_audit))",
			&stmt, err);
	if (r)
		return r;
	r = mp_store_step(store, stmt, "read", err);
	if (r > 0)
		strays = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	if (r < 0)
		return r;
	return strays ? mp_store_damaged(store, "effects without an audit", err) : 0;
}
