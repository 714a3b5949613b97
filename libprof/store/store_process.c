// SPDX-License-Identifier: Apache-2.0
/* store_process - the table "process"; see store_process.h. */
#include "libprof/store/store_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"

/* As for counts, the last MP_KEEP_DAYS are kept apart, and older ones are in one row. */

struct row {
	struct mp_process process;
	int64_t first_day, last_day;
};

static int64_t bound_uid(uint32_t uid)
{
	return uid == MP_UID_UNKNOWN ? -1 : (int64_t)uid;
}

/* Return: number of rows of @day, or -errno. */
static int64_t count_rows(struct mp_store *store, int64_t day, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int64_t nr = 0;
	int r = mp_store_stmt(store, MP_STMT_PROCESS_COUNT,
			      "SELECT count(*) FROM process WHERE first_day = ?1", &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, day);
	r = mp_store_step(store, stmt, "read", err);
	if (r > 0)
		nr = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return r < 0 ? r : nr;
}

static int bind_key(sqlite3_stmt *stmt, const struct row *row)
{
	sqlite3_bind_text(stmt, 1, row->process.name, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(stmt, 2, row->process.unit, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(stmt, 3, bound_uid(row->process.uid));
	return sqlite3_bind_int64(stmt, 4, row->first_day);
}

/* Return: 1 if there is such a row, 0 if not, -errno. */
static int has_row(struct mp_store *store, const struct row *row, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PROCESS_FIND,
			      "SELECT 1 FROM process WHERE name = ?1 AND unit = ?2 AND uid = ?3"
			      " AND first_day = ?4",
			      &stmt, err);

	if (r)
		return r;
	bind_key(stmt, row);
	r = mp_store_step(store, stmt, "read", err);
	sqlite3_reset(stmt);
	return r;
}

/* @nr_rows: rows of the day; a new row is added to it. */
static int add_row(struct mp_store *store, const struct row *row, int64_t *nr_rows,
		   struct mp_err *err)
{
	struct row others = {.process = {.name = MP_PROCESS_OTHERS,
					 .uid = MP_UID_UNKNOWN,
					 .nr = row->process.nr},
			     .first_day = row->first_day,
			     .last_day = row->last_day};
	sqlite3_stmt *stmt;
	int r = has_row(store, row, err);

	if (r < 0)
		return r;
	if (!r && *nr_rows >= MP_PROCESS_ROWS_DAY)
		row = &others;
	*nr_rows += !r;
	/* A sum beyond 2^63 would become a floating-point number: keep the largest integer. */
	r = mp_store_stmt(store, MP_STMT_PROCESS_ADD,
			  "INSERT INTO process(name, unit, uid, first_day, last_day, nr)"
			  " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET"
			  " last_day = max(last_day, excluded.last_day),"
			  " nr = CASE WHEN nr > 9223372036854775807 - excluded.nr"
			  " THEN 9223372036854775807 ELSE nr + excluded.nr END",
			  &stmt, err);
	if (r)
		return r;
	bind_key(stmt, row);
	sqlite3_bind_int64(stmt, 5, row->last_day);
	sqlite3_bind_int64(stmt, 6, (int64_t)row->process.nr);
	return mp_store_run(store, stmt, "write", err);
}

static int run_day(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t day,
		   struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, which, sql, &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, day);
	return mp_store_run(store, stmt, "write", err);
}

/* Joins the rows of each process for days up to @day. */
static int fold(struct mp_store *store, int64_t day, struct mp_err *err)
{
	int r = run_day(store, MP_STMT_PROCESS_FOLD,
			"INSERT OR REPLACE INTO process SELECT name, unit, uid, min(first_day),"
			" max(last_day), sum(nr) FROM process WHERE last_day <= ?1"
			" GROUP BY name, unit, uid HAVING count(*) > 1",
			day, err);

	if (!r)
		r = run_day(store, MP_STMT_PROCESS_DROP,
			    "DELETE FROM process WHERE last_day <= ?1 AND EXISTS (SELECT 1 FROM"
			    " process AS p WHERE p.name = process.name AND p.unit = process.unit"
			    " AND p.uid = process.uid AND p.first_day < process.first_day"
			    " AND p.last_day >= process.last_day)",
			    day, err);
	return r;
}

int mp_store_add_processes(struct mp_store *store, int64_t when_s,
			   const struct mp_process *processes, size_t nr, struct mp_err *err)
{
	int64_t day = mp_day_of(when_s), nr_rows;
	bool began;
	int r;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "processes of a time before 1970");
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	nr_rows = count_rows(store, day, err);
	r = nr_rows < 0 ? (int)nr_rows : 0;
	/* The first rows of a new day: another day has become old. */
	if (!nr_rows && nr)
		r = fold(store, day - MP_KEEP_DAYS, err);
	for (size_t i = 0; i < nr && !r; i++) {
		struct row row = {processes[i], day, day};

		if (processes[i].nr > INT64_MAX)
			r = mp_err_set(err, EINVAL, "more than 2^63 samples of a process");
		else if (processes[i].nr)
			r = add_row(store, &row, &nr_rows, err);
	}
	return mp_store_leave(store, began, r, err);
}

static void copy_text(char *to, size_t size, const unsigned char *from)
{
	snprintf(to, size, "%s", from ? (const char *)from : "");
}

/* All rows, by name, unit and user. */
static int list_rows(struct mp_store *store, struct row **out, size_t *nr, struct mp_err *err)
{
	struct row *rows = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_PROCESS_LIST,
			      "SELECT name, unit, uid, first_day, last_day, nr FROM process"
			      " ORDER BY name, unit, uid, first_day",
			      &stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		int64_t uid = sqlite3_column_int64(stmt, 2), count = sqlite3_column_int64(stmt, 5);
		struct row row = {.first_day = sqlite3_column_int64(stmt, 3),
				  .last_day = sqlite3_column_int64(stmt, 4)};

		if (uid < -1 || uid >= UINT32_MAX || count < 0 || row.first_day < 0 ||
		    row.first_day > row.last_day) {
			r = mp_store_damaged(store, "an impossible process", err);
			break;
		}
		copy_text(row.process.name, sizeof(row.process.name), sqlite3_column_text(stmt, 0));
		copy_text(row.process.unit, sizeof(row.process.unit), sqlite3_column_text(stmt, 1));
		row.process.uid = uid < 0 ? MP_UID_UNKNOWN : (uint32_t)uid;
		row.process.nr = (uint64_t)count;
		r = mp_store_grow(rows, max, n + 1, err);
		if (r)
			break;
		rows[n++] = row;
	}
	sqlite3_reset(stmt);
	if (r) {
		free(rows);
		return r;
	}
	*out = rows;
	*nr = n;
	return 0;
}

static bool is_same(const struct mp_process *a, const struct mp_process *b)
{
	return a->uid == b->uid && !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit);
}

int mp_process_compare(const void *a, const void *b)
{
	const struct mp_process *x = a, *y = b;
	int r;

	if (x->nr != y->nr)
		return x->nr < y->nr ? 1 : -1;
	r = strcmp(x->name, y->name);
	r = r ? r : strcmp(x->unit, y->unit);
	return r ? r : (x->uid > y->uid) - (x->uid < y->uid);
}

int mp_store_list_processes(struct mp_store *store, int64_t since_s, struct mp_process **out,
			    size_t *nr, struct mp_err *err)
{
	struct mp_process *sums;
	struct row *rows = NULL;
	size_t nr_rows = 0, n = 0;
	int r = list_rows(store, &rows, &nr_rows, err);

	if (r)
		return r;
	sums = malloc((nr_rows + 1) * sizeof(*sums));
	for (size_t i = 0; i < nr_rows && sums; i++) {
		if (!mp_day_wanted(rows[i].last_day, since_s))
			continue;
		if (!n || !is_same(&sums[n - 1], &rows[i].process))
			sums[n++] = rows[i].process;
		else if (__builtin_add_overflow(sums[n - 1].nr, rows[i].process.nr,
						&sums[n - 1].nr))
			sums[n - 1].nr = UINT64_MAX;
	}
	free(rows);
	if (!sums)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (n)
		qsort(sums, n, sizeof(*sums), mp_process_compare);
	*out = sums;
	*nr = n;
	return 0;
}

int mp_store_merge_processes(struct mp_store *out, struct mp_store *in, struct mp_err *err)
{
	struct row *rows = NULL;
	size_t nr = 0;
	int r = list_rows(in, &rows, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		int64_t nr_rows = count_rows(out, rows[i].first_day, err);

		r = nr_rows < 0 ? (int)nr_rows : add_row(out, &rows[i], &nr_rows, err);
	}
	free(rows);
	return r;
}
