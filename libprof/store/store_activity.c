// SPDX-License-Identifier: Apache-2.0
/*
 * store_activity - samples of a program in its own code, in its libraries and in the kernel
 * (Morph, SOSP 1997, Table 3). Decides how long days stay apart. Called by the daemon (add)
 * and by morph-stats activity (list).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"
#include "libprof/store/store_span.h"

/* As for counts, the last MP_KEEP_DAYS are kept apart, and older ones are in one row. */

struct row {
	int64_t first_day, last_day;
	struct mp_activity activity;
};

static int read_activity(struct mp_store *store, sqlite3_stmt *stmt, int column,
			 struct mp_activity *out, struct mp_err *err)
{
	uint64_t *fields[] = {&out->app, &out->lib, &out->kernel, &out->other};

	for (int i = 0; i < 4; i++) {
		int64_t value = sqlite3_column_int64(stmt, column + i);

		if (value < 0)
			return mp_store_damaged(store, "activity below zero", err);
		*fields[i] = (uint64_t)value;
	}
	return 0;
}

static int add_one(uint64_t *sum, uint64_t more)
{
	return __builtin_add_overflow(*sum, more, sum) || *sum > INT64_MAX;
}

/* Return: 0; not 0: more than the database can hold. */
static int add_up(struct mp_activity *sum, const struct mp_activity *more)
{
	return add_one(&sum->app, more->app) | add_one(&sum->lib, more->lib) |
	       add_one(&sum->kernel, more->kernel) | add_one(&sum->other, more->other);
}

static int put_row(struct mp_store *store, int64_t module, const struct row *row,
		   struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_ACTIVITY_ADD,
		"INSERT OR REPLACE INTO activity(module, first_day, last_day, app, lib,"
		" kernel, other) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		&stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, row->first_day);
	sqlite3_bind_int64(stmt, 3, row->last_day);
	sqlite3_bind_int64(stmt, 4, (int64_t)row->activity.app);
	sqlite3_bind_int64(stmt, 5, (int64_t)row->activity.lib);
	sqlite3_bind_int64(stmt, 6, (int64_t)row->activity.kernel);
	sqlite3_bind_int64(stmt, 7, (int64_t)row->activity.other);
	return mp_store_run(store, stmt, "write", err);
}

static int delete_row(struct mp_store *store, int64_t module, int64_t first_day, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_ACTIVITY_DELETE,
			      "DELETE FROM activity WHERE module = ?1 AND first_day = ?2", &stmt,
			      err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, first_day);
	return mp_store_run(store, stmt, "write", err);
}

/* Number of a program's rows in memory: one more than the horizon allows. */
#define MAX_ROWS (MP_KEEP_DAYS + 2)

static int read_rows(struct mp_store *store, int64_t module, struct row rows[MAX_ROWS], size_t *nr,
		     struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_ACTIVITY_FIND,
			      "SELECT first_day, last_day, app, lib, kernel, other FROM activity"
			      " WHERE module = ?1 ORDER BY first_day",
			      &stmt, err);

	*nr = 0;
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct row *row = &rows[*nr];

		if (*nr == MAX_ROWS) {
			r = mp_store_damaged(store, "more days of activity than are kept", err);
			break;
		}
		row->first_day = sqlite3_column_int64(stmt, 0);
		row->last_day = sqlite3_column_int64(stmt, 1);
		if (row->first_day > row->last_day || (*nr && row[-1].last_day >= row->first_day)) {
			r = mp_store_damaged(store, "days of activity that overlap", err);
			break;
		}
		r = read_activity(store, stmt, 2, &row->activity, err);
		if (r)
			break;
		++*nr;
	}
	sqlite3_reset(stmt);
	return r;
}

/* Folds the two oldest rows while both are beyond the horizon. */
static int fold_rows(struct mp_store *store, int64_t module, struct row *rows, size_t nr,
		     struct mp_err *err)
{
	int r = 0;

	while (!r && nr > 1 && rows[1].last_day <= rows[nr - 1].last_day - MP_KEEP_DAYS) {
		r = delete_row(store, module, rows[1].first_day, err);
		rows[0].last_day = rows[1].last_day;
		if (!r && add_up(&rows[0].activity, &rows[1].activity))
			r = mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples", store->path);
		if (!r)
			r = put_row(store, module, &rows[0], err);
		nr--;
		memmove(&rows[1], &rows[2], (nr - 1) * sizeof(*rows));
	}
	return r;
}

/* Rows that overlap @span become one row with it. */
static int add_activity(struct mp_store *store, int64_t module, const struct mp_span *span,
			const struct mp_activity *delta, struct mp_err *err)
{
	struct row rows[MAX_ROWS + 1], wide = {span->first_day, span->last_day, *delta};
	size_t nr, first, end;
	int r = read_rows(store, module, rows, &nr, err);

	if (r)
		return r;
	for (first = 0; first < nr && rows[first].last_day < span->first_day; first++)
		;
	for (end = first; end < nr && rows[end].first_day <= span->last_day && !r; end++) {
		if (rows[end].first_day < wide.first_day)
			wide.first_day = rows[end].first_day;
		if (rows[end].last_day > wide.last_day)
			wide.last_day = rows[end].last_day;
		if (add_up(&wide.activity, &rows[end].activity))
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples",
					  store->path);
		r = delete_row(store, module, rows[end].first_day, err);
	}
	if (!r)
		r = put_row(store, module, &wide, err);
	if (r)
		return r;
	memmove(&rows[first + 1], &rows[end], (nr - end) * sizeof(*rows));
	rows[first] = wide;
	return fold_rows(store, module, rows, nr - (end - first) + 1, err);
}

int mp_store_add_activity(struct mp_store *store, int64_t program_module, int64_t when_s,
			  const struct mp_activity *delta, struct mp_err *err)
{
	struct mp_span day = {.first_day = mp_day_of(when_s), .last_day = mp_day_of(when_s)};

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "activity of a time before 1970");
	return mp_store_add_activity_span(store, program_module, &day, delta, err);
}

int mp_store_add_activity_span(struct mp_store *store, int64_t program_module,
			       const struct mp_span *span, const struct mp_activity *delta,
			       struct mp_err *err)
{
	bool began;
	int r;

	if (span->first_day < 0 || span->first_day > span->last_day ||
	    (delta->app | delta->lib | delta->kernel | delta->other) > INT64_MAX)
		return mp_err_set(err, EINVAL, "impossible activity");
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = add_activity(store, program_module, span, delta, err);
	return mp_store_leave(store, began, r, err);
}

static int compare_total(const void *a, const void *b)
{
	const struct mp_program_activity *x = a, *y = b;
	uint64_t tx = x->activity.app + x->activity.lib + x->activity.kernel + x->activity.other;
	uint64_t ty = y->activity.app + y->activity.lib + y->activity.kernel + y->activity.other;

	if (tx != ty)
		return tx < ty ? 1 : -1;
	return (x->module > y->module) - (x->module < y->module);
}

/* All rows, in order of module and day. */
static int list_spans(struct mp_store *store, struct mp_activity_span **out, size_t *nr,
		      struct mp_err *err)
{
	struct mp_activity_span *spans = NULL;
	int64_t last_module = INT64_MIN, last_day = INT64_MIN;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_ACTIVITY_ALL,
			      "SELECT module, first_day, last_day, app, lib, kernel, other"
			      " FROM activity ORDER BY module, first_day",
			      &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct mp_activity_span span = {
			.module = sqlite3_column_int64(stmt, 0),
			.span.first_day = sqlite3_column_int64(stmt, 1),
			.span.last_day = sqlite3_column_int64(stmt, 2),
		};

		r = read_activity(store, stmt, 3, &span.activity, err);
		if (!r && (span.module < last_module ||
			   (span.module == last_module && span.span.first_day <= last_day) ||
			   span.span.first_day < 0 || span.span.first_day > span.span.last_day))
			r = mp_store_damaged(store, "activity out of order", err);
		if (r)
			break;
		last_day = span.span.first_day;
		last_module = span.module;
		r = mp_store_grow(spans, max, n + 1, err);
		if (r)
			break;
		spans[n++] = span;
	}
	sqlite3_reset(stmt);
	if (r) {
		free(spans);
		return r;
	}
	*out = spans;
	*nr = n;
	return 0;
}

int mp_store_list_activity_spans(struct mp_store *store, struct mp_activity_span **out, size_t *nr,
				 struct mp_err *err)
{
	struct mp_activity_span *spans = NULL;
	size_t n = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = list_spans(store, &spans, &n, err);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(spans);
		return r;
	}
	*out = spans;
	*nr = n;
	return 0;
}

/* Adds up the wanted rows of each program. */
static int list_activity(struct mp_store *store, int64_t since_s, struct mp_program_activity **out,
			 size_t *nr, struct mp_err *err)
{
	struct mp_program_activity *programs = NULL;
	struct mp_activity_span *spans = NULL;
	size_t n = 0, nr_spans = 0;
	int r = list_spans(store, &spans, &nr_spans, err);

	if (!r && !(programs = malloc((nr_spans + 1) * sizeof(*programs))))
		r = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < nr_spans && !r; i++) {
		if (!mp_day_wanted(spans[i].span.last_day, since_s))
			continue;
		if (!n || programs[n - 1].module != spans[i].module)
			programs[n++] =
				(struct mp_program_activity){spans[i].module, spans[i].activity};
		else if (add_up(&programs[n - 1].activity, &spans[i].activity))
			r = mp_store_damaged(store, "activity beyond 2^63", err);
	}
	free(spans);
	*out = programs;
	*nr = n;
	return r;
}

int mp_store_list_activity(struct mp_store *store, int64_t since_s,
			   struct mp_program_activity **out, size_t *nr, struct mp_err *err)
{
	struct mp_program_activity *programs = NULL;
	size_t n = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = list_activity(store, since_s, &programs, &n, err);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(programs);
		return r;
	}
	if (n)
		qsort(programs, n, sizeof(*programs), compare_total);
	*out = programs;
	*nr = n;
	return 0;
}
