// SPDX-License-Identifier: Apache-2.0
/* store_history - the table of decisions; see store_history.h. */
#include "libprof/store/jobs/store_history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"

#define TEXT_OF(number)	 TEXT_OF_(number)
#define TEXT_OF_(number) #number

/* ---- writing ------------------------------------------------------------------------------- */

static int find_step(struct mp_store *store, const struct mp_job *job, const char *step,
		     struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_HISTORY_FIND,
			      "SELECT 1 FROM history WHERE path = ?1 AND round = ?2 AND step = ?3",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, job->path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, job->round);
	sqlite3_bind_text(stmt, 3, step, -1, SQLITE_STATIC);
	r = mp_store_step(store, stmt, "read", err);
	sqlite3_reset(stmt);
	if (r == 1)
		return mp_err_set(err, EEXIST, "%s: round %u has the step %s already", job->path,
				  job->round, step);
	return r;
}

static void bind_text(sqlite3_stmt *stmt, int column, const char *text)
{
	sqlite3_bind_text(stmt, column, text ? text : "",
			  text ? (int)strnlen(text, MP_JOB_TEXT_MAX) : 0, SQLITE_STATIC);
}

static int insert(struct mp_store *store, const struct mp_job *job, enum mp_job_state state,
		  const struct mp_job_step *step, struct mp_err *err)
{
	const struct mp_id *id = &job->id;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_HISTORY_ADD,
			      "INSERT INTO history(when_s, path, build_id, text_hash, round, step,"
			      " state, verdict, reason, ratio, lowest, highest, predicted, layout)"
			      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
			      " ?14)",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, step->when_s);
	sqlite3_bind_text(stmt, 2, job->path, -1, SQLITE_STATIC);
	sqlite3_bind_blob(stmt, 3, id->build_id_len ? (const void *)id->build_id : "",
			  id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 4, (int64_t)id->text_hash);
	sqlite3_bind_int64(stmt, 5, job->round);
	bind_text(stmt, 6, step->step);
	bind_text(stmt, 7, mp_job_state_name(state));
	bind_text(stmt, 8, step->verdict);
	bind_text(stmt, 9, step->reason);
	sqlite3_bind_double(stmt, 10, job->gain.ratio);
	sqlite3_bind_double(stmt, 11, job->gain.lowest);
	sqlite3_bind_double(stmt, 12, job->gain.highest);
	sqlite3_bind_double(stmt, 13, job->gain.predicted);
	sqlite3_bind_text(stmt, 14, job->layout, -1, SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

static int drop_old(struct mp_store *store, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_HISTORY_DROP,
			      "DELETE FROM history WHERE key <= (SELECT max(key) FROM"
			      " history) - " TEXT_OF(MP_HISTORY_KEPT),
			      &stmt, err);

	return r ? r : mp_store_run(store, stmt, "write", err);
}

int mp_store_add_decision(struct mp_store *store, const struct mp_job *job, enum mp_job_state state,
			  const struct mp_job_step *step, struct mp_err *err)
{
	int r = find_step(store, job, step->step, err);

	if (!r)
		r = insert(store, job, state, step, err);
	if (!r)
		r = drop_old(store, err);
	return r;
}

/* ---- reading ------------------------------------------------------------------------------- */

static char *copy_text(sqlite3_stmt *stmt, int column, size_t most)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text && strlen(text) <= most ? strdup(text) : NULL;
}

static bool read_row(sqlite3_stmt *stmt, struct mp_decision *d)
{
	double *const gain[] = {&d->gain.ratio, &d->gain.lowest, &d->gain.highest,
				&d->gain.predicted};
	const char *layout = (const char *)sqlite3_column_text(stmt, 14);
	int size = sqlite3_column_bytes(stmt, 3);
	int64_t round = sqlite3_column_int64(stmt, 5);
	bool fine = mp_job_state_find((const char *)sqlite3_column_text(stmt, 7), &d->state);

	d->key = sqlite3_column_int64(stmt, 0);
	d->when_s = sqlite3_column_int64(stmt, 1);
	d->path = copy_text(stmt, 2, MP_JOB_PATH_MAX);
	d->step = copy_text(stmt, 6, MP_JOB_TEXT_MAX);
	d->verdict = copy_text(stmt, 8, MP_JOB_TEXT_MAX);
	d->reason = copy_text(stmt, 9, MP_JOB_TEXT_MAX);
	d->round = (uint32_t)round;
	d->id.text_hash = (uint64_t)sqlite3_column_int64(stmt, 4);
	if (size >= 0 && size <= MP_BUILD_ID_MAX) {
		d->id.build_id_len = (uint8_t)size;
		if (size)
			memcpy(d->id.build_id, sqlite3_column_blob(stmt, 3), (size_t)size);
	} else {
		fine = false;
	}
	for (int i = 0; i < 4; i++) {
		*gain[i] = sqlite3_column_double(stmt, 10 + i);
		fine = fine && isfinite(*gain[i]) && *gain[i] >= 0;
	}
	return fine && d->path && d->step && d->verdict && d->reason && round >= 1 &&
	       round <= UINT32_MAX && layout &&
	       snprintf(d->layout, sizeof(d->layout), "%s", layout) < (int)sizeof(d->layout);
}

static void fini(struct mp_decision *d)
{
	free(d->path);
	free(d->step);
	free(d->verdict);
	free(d->reason);
}

void mp_store_free_history(struct mp_decision *decisions, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		fini(&decisions[i]);
	free(decisions);
}

int mp_store_list_history(struct mp_store *store, const char *path, int64_t since_s,
			  struct mp_decision **out, size_t *nr, struct mp_err *err)
{
	struct mp_decision *list = NULL;
	int64_t last = INT64_MIN;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_HISTORY_LIST,
			      "SELECT key, when_s, path, build_id, text_hash, round, step, state,"
			      " verdict, reason, ratio, lowest, highest, predicted, layout"
			      " FROM history WHERE (?1 IS NULL OR path = ?1) AND when_s >= ?2"
			      " ORDER BY key",
			      &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	if (path)
		sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, since_s);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(list, max, n + 1, err);
		if (r)
			break;
		list[n] = (struct mp_decision){0};
		r = read_row(stmt, &list[n++])
			    ? 0
			    : mp_store_damaged(store, "an impossible decision", err);
		/* Check the order: a damaged tree could otherwise loop for ever. */
		if (!r && list[n - 1].key <= last)
			r = mp_store_damaged(store, "decisions out of order", err);
		if (r)
			break;
		last = list[n - 1].key;
	}
	sqlite3_reset(stmt);
	if (r) {
		mp_store_free_history(list, n);
		return r;
	}
	*out = list;
	*nr = n;
	return 0;
}
