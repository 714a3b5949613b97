// SPDX-License-Identifier: Apache-2.0
/* store_jobs - the table of jobs, and the transaction of one step; see store_jobs.h. */
#include "libprof/store/jobs/store_jobs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/jobs/store_history.h"
#include "libprof/store/store_private.h"

/* ---- names --------------------------------------------------------------------------------- */

static const char *const asker_names[MP_NR_JOB_ASKERS] = {
	[MP_JOB_BY_TIMER] = "timer",
	[MP_JOB_BY_REQUEST] = "request",
	[MP_JOB_BY_WATCH] = "watch",
};

bool mp_job_state_ends(enum mp_job_state state)
{
	switch (state) {
	case MP_JOB_ADVISED:
	case MP_JOB_KEPT:
	case MP_JOB_UNDONE:
	case MP_JOB_NOT_FASTER:
	case MP_JOB_UNDECIDED:
	case MP_JOB_REFUSED:
	case MP_JOB_FAILED:
	case MP_JOB_GONE: return true;
	default: return false;
	}
}

bool mp_job_state_in_place(enum mp_job_state state)
{
	switch (state) {
	case MP_JOB_COUNTING:
	case MP_JOB_AUDITING:
	case MP_JOB_TRYING:
	case MP_JOB_ADOPTED:
	case MP_JOB_KEPT:
	case MP_JOB_UNDOING: return true;
	default: return false;
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

#define COLUMNS                                                                                    \
	"key, path, build_id, text_hash, file_hash, state, since_s, asked, uid, round,"            \
	" not_before_s, detail, output, layout, ratio, lowest, highest, predicted, adopted_s,"     \
	" before_samples, before_all, before_crashes"

static bool copy_hash(sqlite3_stmt *stmt, int column, char *out)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text && snprintf(out, MP_JOB_HASH_MAX, "%s", text) < MP_JOB_HASH_MAX;
}

static char *copy_text(sqlite3_stmt *stmt, int column, size_t most)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text && strlen(text) <= most ? strdup(text) : NULL;
}

static bool read_id(sqlite3_stmt *stmt, int column, struct mp_id *id)
{
	int size = sqlite3_column_bytes(stmt, column);

	if (size < 0 || size > MP_BUILD_ID_MAX)
		return false;
	id->build_id_len = (uint8_t)size;
	if (size)
		memcpy(id->build_id, sqlite3_column_blob(stmt, column), (size_t)size);
	id->text_hash = (uint64_t)sqlite3_column_int64(stmt, column + 1);
	return true;
}

static bool read_gain(sqlite3_stmt *stmt, int column, struct mp_job_gain *gain)
{
	double *const fields[] = {&gain->ratio, &gain->lowest, &gain->highest, &gain->predicted};

	for (int i = 0; i < 4; i++) {
		*fields[i] = sqlite3_column_double(stmt, column + i);
		if (!isfinite(*fields[i]) || *fields[i] < 0)
			return false;
	}
	return true;
}

static bool read_row(sqlite3_stmt *stmt, struct mp_job *job)
{
	int asked = mp_job_find_name(asker_names, MP_NR_JOB_ASKERS,
				     (const char *)sqlite3_column_text(stmt, 7));
	int64_t uid = sqlite3_column_int64(stmt, 8), round = sqlite3_column_int64(stmt, 9);
	bool fine = mp_job_state_find((const char *)sqlite3_column_text(stmt, 5), &job->state);

	job->key = sqlite3_column_int64(stmt, 0);
	job->path = copy_text(stmt, 1, MP_JOB_PATH_MAX);
	job->since_s = sqlite3_column_int64(stmt, 6);
	job->asked = (enum mp_job_asker)asked;
	job->uid = (uint32_t)uid;
	job->round = (uint32_t)round;
	job->not_before_s = sqlite3_column_int64(stmt, 10);
	job->detail = copy_text(stmt, 11, MP_JOB_TEXT_MAX);
	job->output = copy_text(stmt, 12, MP_JOB_PATH_MAX);
	job->adopted_s = sqlite3_column_int64(stmt, 18);
	job->before_samples = (uint64_t)sqlite3_column_int64(stmt, 19);
	job->before_all = (uint64_t)sqlite3_column_int64(stmt, 20);
	job->before_crashes = (uint64_t)sqlite3_column_int64(stmt, 21);
	return fine && asked >= 0 && uid >= 0 && uid <= UINT32_MAX && round >= 1 &&
	       round <= UINT32_MAX && job->path && job->path[0] == '/' && job->detail &&
	       job->output && read_id(stmt, 2, &job->id) && copy_hash(stmt, 4, job->file_hash) &&
	       copy_hash(stmt, 13, job->layout) && read_gain(stmt, 14, &job->gain);
}

void mp_store_fini_job(struct mp_job *job)
{
	free(job->path);
	free(job->detail);
	free(job->output);
	job->path = job->detail = job->output = NULL;
}

void mp_store_free_jobs(struct mp_job *jobs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		mp_store_fini_job(&jobs[i]);
	free(jobs);
}

int mp_store_find_job(struct mp_store *store, const char *path, struct mp_job *out,
		      struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_JOB_FIND,
			      "SELECT " COLUMNS " FROM job WHERE path = ?1", &stmt, err);

	*out = (struct mp_job){0};
	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
	r = mp_store_step(store, stmt, "read", err);
	if (r == 1)
		r = read_row(stmt, out) ? 0 : mp_store_damaged(store, "an impossible job", err);
	else if (!r)
		r = -ENOENT;
	sqlite3_reset(stmt);
	if (r)
		mp_store_fini_job(out);
	return r;
}

int mp_store_list_jobs(struct mp_store *store, struct mp_job **out, size_t *nr, struct mp_err *err)
{
	struct mp_job *list = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_JOB_LIST, "SELECT " COLUMNS " FROM job ORDER BY path",
			      &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		r = mp_store_grow(list, max, n + 1, err);
		if (r)
			break;
		list[n] = (struct mp_job){0};
		r = read_row(stmt, &list[n++]) ? 0
					       : mp_store_damaged(store, "an impossible job", err);
		/* Check the order: a damaged tree could otherwise loop for ever. */
		if (!r && n > 1 && strcmp(list[n - 2].path, list[n - 1].path) >= 0)
			r = mp_store_damaged(store, "jobs out of order", err);
		if (r)
			break;
	}
	sqlite3_reset(stmt);
	if (r) {
		mp_store_free_jobs(list, n);
		return r;
	}
	*out = list;
	*nr = n;
	return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void bind_fields(sqlite3_stmt *stmt, const struct mp_job *job)
{
	static const char none[1] = "";
	const struct mp_id *id = &job->id;

	sqlite3_bind_int64(stmt, 1, job->key);
	sqlite3_bind_text(stmt, 2, job->path, -1, SQLITE_STATIC);
	sqlite3_bind_blob(stmt, 3, id->build_id_len ? (const void *)id->build_id : none,
			  id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 4, (int64_t)id->text_hash);
	sqlite3_bind_text(stmt, 5, job->file_hash, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 6, mp_job_state_name(job->state), -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 7, job->since_s);
	sqlite3_bind_text(stmt, 8, asker_names[job->asked], -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 9, job->uid);
	sqlite3_bind_int64(stmt, 10, job->round);
	sqlite3_bind_int64(stmt, 11, job->not_before_s);
	sqlite3_bind_text(stmt, 12, job->detail ? job->detail : none,
			  job->detail ? (int)strnlen(job->detail, MP_JOB_TEXT_MAX) : 0,
			  SQLITE_STATIC);
	sqlite3_bind_text(stmt, 13, job->output ? job->output : none, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 14, job->layout, -1, SQLITE_STATIC);
	sqlite3_bind_double(stmt, 15, job->gain.ratio);
	sqlite3_bind_double(stmt, 16, job->gain.lowest);
	sqlite3_bind_double(stmt, 17, job->gain.highest);
	sqlite3_bind_double(stmt, 18, job->gain.predicted);
	sqlite3_bind_int64(stmt, 19, job->adopted_s);
	sqlite3_bind_int64(stmt, 20, (int64_t)job->before_samples);
	sqlite3_bind_int64(stmt, 21, (int64_t)job->before_all);
	sqlite3_bind_int64(stmt, 22, (int64_t)job->before_crashes);
}

static int insert(struct mp_store *store, struct mp_job *job, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_JOB_ADD,
			      "INSERT INTO job(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
			      " ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,"
			      " ?22)",
			      &stmt, err);

	if (r)
		return r;
	bind_fields(stmt, job);
	sqlite3_bind_null(stmt, 1);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		job->key = sqlite3_last_insert_rowid(store->db);
	return r;
}

/* Stores all fields of @job, if the stored one is still in @state and @round. */
static int update(struct mp_store *store, const struct mp_job *job, enum mp_job_state state,
		  uint32_t round, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_JOB_SET,
			      "UPDATE job SET build_id = ?3, text_hash = ?4, file_hash = ?5,"
			      " state = ?6, since_s = ?7, asked = ?8, uid = ?9, round = ?10,"
			      " not_before_s = ?11, detail = ?12, output = ?13, layout = ?14,"
			      " ratio = ?15, lowest = ?16, highest = ?17, predicted = ?18,"
			      " adopted_s = ?19, before_samples = ?20, before_all = ?21,"
			      " before_crashes = ?22"
			      " WHERE key = ?1 AND path = ?2 AND state = ?23 AND round = ?24",
			      &stmt, err);

	if (r)
		return r;
	bind_fields(stmt, job);
	sqlite3_bind_text(stmt, 23, mp_job_state_name(state), -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 24, round);
	r = mp_store_run(store, stmt, "write", err);
	if (!r && sqlite3_changes(store->db) != 1)
		r = mp_err_set(err, ESTALE, "%s: another process changed this job meanwhile",
			       job->path);
	return r;
}

/* The round after the last one in the history: a job may have been dropped. */
static int next_round(struct mp_store *store, const char *path, uint32_t *round, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int64_t last = 0;
	int r = mp_store_stmt(store, MP_STMT_HISTORY_ROUND,
			      "SELECT max(round) FROM history WHERE path = ?1", &stmt, err);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
	r = mp_store_step(store, stmt, "read", err);
	if (r == 1)
		last = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	if (r < 0)
		return r;
	if (last < 0 || last >= UINT32_MAX)
		return mp_store_damaged(store, "an impossible round", err);
	*round = (uint32_t)last + 1;
	return 0;
}

/* Forgets what the last round made. */
static void forget_round(struct mp_job *job)
{
	job->layout[0] = '\0';
	job->gain = (struct mp_job_gain){0};
	job->adopted_s = job->not_before_s = 0;
	job->before_samples = job->before_all = job->before_crashes = 0;
}

/* One transaction: the job becomes @next, and the step is in the history. */
static int advance(struct mp_store *store, struct mp_job *next, const struct mp_job *job,
		   const struct mp_job_step *step, struct mp_err *err)
{
	bool began;
	int r = mp_store_enter_durably(store, &began, err);

	if (r)
		return r;
	r = update(store, next, job->state, job->round, err);
	if (!r)
		r = mp_store_add_decision(store, next, next->state, step, err);
	return mp_store_leave(store, began, r, err);
}

/* Makes @job what @changed is, with what @step says. */
static int change(struct mp_store *store, struct mp_job *job, const struct mp_job *changed,
		  const struct mp_job_step *step, struct mp_err *err)
{
	struct mp_job next = *changed;
	char *detail;
	int r;

	next.since_s = step->when_s;
	next.detail = detail = strndup(step->reason ? step->reason : "", MP_JOB_TEXT_MAX);
	if (!detail)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = advance(store, &next, job, step, err);
	if (r) {
		free(detail);
		return r;
	}
	free(job->detail);
	*job = next;
	return 0;
}

int mp_store_advance_job(struct mp_store *store, struct mp_job *job, enum mp_job_state to,
			 const struct mp_job_step *step, struct mp_err *err)
{
	struct mp_job next = *job;

	next.state = to;
	return change(store, job, &next, step, err);
}

int mp_store_renew_job(struct mp_store *store, struct mp_job *job, const struct mp_job_step *step,
		       struct mp_err *err)
{
	struct mp_job next = *job;
	char *output = strdup(""), *old = job->output;
	int r = output ? next_round(store, job->path, &next.round, err)
		       : mp_err_set(err, ENOMEM, "out of memory");

	next.output = output;
	forget_round(&next);
	next.state = MP_JOB_WANTED;
	if (!r)
		r = change(store, job, &next, step, err);
	free(r ? output : old);
	return r;
}

int mp_store_note_job(struct mp_store *store, const struct mp_job *job, struct mp_err *err)
{
	return update(store, job, job->state, job->round, err);
}

/* ---- wanting ------------------------------------------------------------------------------- */

static int add_job(struct mp_store *store, const char *path, enum mp_job_asker asked, uint32_t uid,
		   int64_t now_s, struct mp_job *job, struct mp_err *err)
{
	const struct mp_job_step step = {"ask", asker_names[asked], "", now_s};
	int r;

	*job = (struct mp_job){.path = strdup(path),
			       .detail = strdup(""),
			       .output = strdup(""),
			       .state = MP_JOB_WANTED,
			       .since_s = now_s,
			       .asked = asked,
			       .uid = uid};
	if (!job->path || !job->detail || !job->output)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = next_round(store, path, &job->round, err);
	if (!r)
		r = insert(store, job, err);
	if (!r)
		r = mp_store_add_decision(store, job, MP_JOB_WANTED, &step, err);
	return r;
}

static int want(struct mp_store *store, const char *path, enum mp_job_asker asked, uint32_t uid,
		bool again, int64_t now_s, struct mp_job *job, struct mp_err *err)
{
	const struct mp_job_step step = {"ask", asker_names[asked], "", now_s};
	int r = mp_store_find_job(store, path, job, err);

	if (r == -ENOENT)
		return add_job(store, path, asked, uid, now_s, job, err);
	if (r || !again)
		return r;
	job->asked = asked;
	job->uid = uid;
	if (mp_job_state_ends(job->state) && job->state != MP_JOB_KEPT)
		return mp_store_renew_job(store, job, &step, err);
	job->not_before_s = 0;
	return mp_store_note_job(store, job, err);
}

int mp_store_want_job(struct mp_store *store, const char *path, enum mp_job_asker asked,
		      uint32_t uid, bool again, int64_t now_s, struct mp_job *out,
		      struct mp_err *err)
{
	struct mp_job job = {0};
	bool began;
	int r;

	if (path[0] != '/' || strlen(path) > MP_JOB_PATH_MAX)
		return mp_err_set(err, EINVAL, "%.80s: not an absolute path, or too long", path);
	r = mp_store_enter_durably(store, &began, err);
	if (r)
		return r;
	r = want(store, path, asked, uid, again, now_s, &job, err);
	r = mp_store_leave(store, began, r, err);
	if (!r && out)
		*out = job;
	else
		mp_store_fini_job(&job);
	return r;
}

int mp_store_check_jobs(struct mp_store *store, struct mp_err *err)
{
	struct mp_decision *decisions;
	struct mp_job *jobs;
	size_t nr;
	int r = mp_store_list_jobs(store, &jobs, &nr, err);

	if (r)
		return r;
	mp_store_free_jobs(jobs, nr);
	r = mp_store_list_history(store, NULL, 0, &decisions, &nr, err);
	if (!r)
		mp_store_free_history(decisions, nr);
	return r;
}
