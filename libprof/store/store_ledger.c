// SPDX-License-Identifier: Apache-2.0
/*
 * store_ledger - sessions, and what happened to every sample that they emitted. It never
 * stores a ledger that does not balance. Called by the daemon (add) and by status (list).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_private.h"

/* Names in the database and in reports: they must not depend on the order of the enums. */
static const char *const unattributed_names[MP_NR_UNATTR] = {
	[MP_UNATTR_NO_PROCESS] = "no-process", [MP_UNATTR_NO_MAPPING] = "no-mapping",
	[MP_UNATTR_ANONYMOUS] = "anonymous",   [MP_UNATTR_DELETED] = "deleted",
	[MP_UNATTR_REPLACED] = "replaced",     [MP_UNATTR_NAMESPACE] = "namespace",
	[MP_UNATTR_UNREADABLE] = "unreadable", [MP_UNATTR_VDSO] = "vdso",
};

static const char *const lost_names[MP_NR_LOST] = {
	[MP_LOST_RING_FULL] = "ring-full",
	[MP_LOST_THROTTLED] = "throttled",
	[MP_LOST_TORN] = "torn",
	[MP_LOST_NO_MEMORY] = "no-memory",
};

static const char *const path_fate_names[MP_NR_PATH_FATES] = {
	[MP_PATH_DECODED] = "decoded",	   [MP_PATH_UNDECODABLE] = "undecodable",
	[MP_PATH_STUB] = "stub",	   [MP_PATH_OUTSIDE] = "outside",
	[MP_PATH_NO_MEMORY] = "no-memory",
};

#define UNATTRIBUTED "unattributed:"
#define LOST	     "lost:"
#define PATHS	     "paths:"
#define STACKS	     "stacks:"
#define CONTEXTS     "contexts"
#define CALLS	     "calls"

const char *mp_unattributed_name(enum mp_unattributed why)
{
	return (unsigned int)why < MP_NR_UNATTR ? unattributed_names[why] : "?";
}

const char *mp_lost_name(enum mp_lost why)
{
	return (unsigned int)why < MP_NR_LOST ? lost_names[why] : "?";
}

const char *mp_path_fate_name(enum mp_path_fate fate)
{
	return (unsigned int)fate < MP_NR_PATH_FATES ? path_fate_names[fate] : "?";
}

/* Return: false if the sum overflows or differs from the emitted samples. */
static bool balances(const struct mp_ledger *ledger)
{
	uint64_t sum = ledger->attributed;
	bool overflow = false;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		overflow |= __builtin_add_overflow(sum, ledger->unattributed[i], &sum);
	for (int i = 0; i < MP_NR_LOST; i++)
		overflow |= __builtin_add_overflow(sum, ledger->lost[i], &sum);
	return !overflow && sum == ledger->emitted && sum <= INT64_MAX;
}

int mp_store_start_session(struct mp_store *store, struct mp_session *session, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_SESSION_ADD,
			      "INSERT INTO session(start_s, last_s, collector, why, event, rate_hz)"
			      " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
			      &stmt, err);

	if (r)
		return r;
	if (session->last_s < session->start_s)
		session->last_s = session->start_s;
	sqlite3_bind_int64(stmt, 1, session->start_s);
	sqlite3_bind_int64(stmt, 2, session->last_s);
	sqlite3_bind_text(stmt, 3, session->collector, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 4, session->why, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 5, session->event, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 6, session->rate_hz);
	r = mp_store_run(store, stmt, "write", err);
	if (!r)
		session->key = sqlite3_last_insert_rowid(store->db);
	return r;
}

static int add_line(struct mp_store *store, int64_t session, const char *kind, const char *name,
		    uint64_t nr, struct mp_err *err)
{
	char what[48];
	sqlite3_stmt *stmt;
	int r;

	if (!nr)
		return 0;
	r = mp_store_stmt(store, MP_STMT_LEDGER_ADD,
			  "INSERT INTO ledger(session, what, nr) VALUES(?1, ?2, ?3)"
			  " ON CONFLICT(session, what) DO UPDATE SET nr = nr + ?3",
			  &stmt, err);
	if (r)
		return r;
	snprintf(what, sizeof(what), "%s%s", kind, name);
	sqlite3_bind_int64(stmt, 1, session);
	sqlite3_bind_text(stmt, 2, what, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, (int64_t)nr);
	return mp_store_run(store, stmt, "write", err);
}

static int add_lines(struct mp_store *store, int64_t session, const struct mp_ledger *delta,
		     struct mp_err *err)
{
	int r = add_line(store, session, "", "emitted", delta->emitted, err);

	if (!r)
		r = add_line(store, session, "", "attributed", delta->attributed, err);
	for (int i = 0; i < MP_NR_UNATTR && !r; i++)
		r = add_line(store, session, UNATTRIBUTED, unattributed_names[i],
			     delta->unattributed[i], err);
	for (int i = 0; i < MP_NR_LOST && !r; i++)
		r = add_line(store, session, LOST, lost_names[i], delta->lost[i], err);
	for (int i = 0; i < MP_NR_PATH_FATES && !r; i++)
		r = add_line(store, session, PATHS, path_fate_names[i], delta->paths[i], err);
	for (int i = 0; i < MP_NR_WALK_STOP && !r; i++)
		r = add_line(store, session, STACKS, mp_walk_stop_name(i), delta->stacks[i], err);
	if (!r)
		r = add_line(store, session, "", CONTEXTS, delta->contexts, err);
	if (!r)
		r = add_line(store, session, "", CALLS, delta->calls, err);
	return r;
}

static int see_session(struct mp_store *store, int64_t session, int64_t now_s, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_SESSION_SEEN,
			      "UPDATE session SET last_s = max(last_s, ?2) WHERE key = ?1", &stmt,
			      err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, session);
	sqlite3_bind_int64(stmt, 2, now_s);
	r = mp_store_run(store, stmt, "write", err);
	if (!r && !sqlite3_changes(store->db))
		return mp_err_set(err, ENOENT, "%s: no session %lld", store->path,
				  (long long)session);
	return r;
}

int mp_store_add_ledger(struct mp_store *store, int64_t session, int64_t now_s,
			const struct mp_ledger *delta, struct mp_err *err)
{
	bool began;
	int r;

	if (!balances(delta))
		return mp_err_set(
			err, EINVAL,
			"samples emitted are not those attributed, unattributed and lost");
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = see_session(store, session, now_s, err);
	if (!r)
		r = add_lines(store, session, delta, err);
	return mp_store_leave(store, began, r, err);
}

/* ---- list ---------------------------------------------------------------------------------- */

static uint64_t *find_line(struct mp_ledger *ledger, const char *what)
{
	if (!strcmp(what, "emitted"))
		return &ledger->emitted;
	if (!strcmp(what, "attributed"))
		return &ledger->attributed;
	if (!strcmp(what, CONTEXTS))
		return &ledger->contexts;
	if (!strcmp(what, CALLS))
		return &ledger->calls;
	for (int i = 0; i < MP_NR_UNATTR; i++)
		if (!strncmp(what, UNATTRIBUTED, strlen(UNATTRIBUTED)) &&
		    !strcmp(what + strlen(UNATTRIBUTED), unattributed_names[i]))
			return &ledger->unattributed[i];
	for (int i = 0; i < MP_NR_LOST; i++)
		if (!strncmp(what, LOST, strlen(LOST)) &&
		    !strcmp(what + strlen(LOST), lost_names[i]))
			return &ledger->lost[i];
	for (int i = 0; i < MP_NR_PATH_FATES; i++)
		if (!strncmp(what, PATHS, strlen(PATHS)) &&
		    !strcmp(what + strlen(PATHS), path_fate_names[i]))
			return &ledger->paths[i];
	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		if (!strncmp(what, STACKS, strlen(STACKS)) &&
		    !strcmp(what + strlen(STACKS), mp_walk_stop_name(i)))
			return &ledger->stacks[i];
	return NULL;
}

static int compare_key(const void *a, const void *b)
{
	const struct mp_session *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int compare_newest(const void *a, const void *b)
{
	const struct mp_session *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? 1 : -1;
	return compare_key(b, a);
}

static int read_ledgers(struct mp_store *store, struct mp_session *sessions, size_t nr,
			struct mp_err *err)
{
	int64_t last = INT64_MIN;
	uint64_t seen = 0, *line;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_LEDGER_LIST,
			      "SELECT session, what, nr FROM ledger ORDER BY session, what", &stmt,
			      err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct mp_session key = {.key = sqlite3_column_int64(stmt, 0)}, *session;
		const char *what = (const char *)sqlite3_column_text(stmt, 1);
		int64_t value = sqlite3_column_int64(stmt, 2);

		session = nr ? bsearch(&key, sessions, nr, sizeof(*sessions), compare_key) : NULL;
		line = session && what ? find_line(&session->ledger, what) : NULL;
		/*
		 * A session has at most as many lines as there are names; more lines mean
		 * that SQLite loops in a damaged b-tree.
		 */
		seen = key.key == last ? seen + 1 : 0;
		if (!line || *line || value < 0 || key.key < last ||
		    seen >= 3 + MP_NR_UNATTR + MP_NR_LOST + MP_NR_PATH_FATES + MP_NR_WALK_STOP) {
			sqlite3_reset(stmt);
			return mp_store_damaged(store, "an impossible ledger", err);
		}
		last = key.key;
		*line = (uint64_t)value;
	}
	for (size_t i = 0; i < nr && !r; i++)
		if (!balances(&sessions[i].ledger))
			r = mp_store_damaged(store, "a ledger that does not balance", err);
	return r;
}

static void copy_text(char *out, size_t size, sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	snprintf(out, size, "%s", text ? text : "");
}

static int read_sessions(struct mp_store *store, struct mp_session **out, size_t *nr,
			 struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(
		store, MP_STMT_SESSION_LIST,
		"SELECT key, start_s, last_s, collector, why, event, rate_hz FROM session"
		" ORDER BY key",
		&stmt, err);

	if (r)
		return r;
	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct mp_session *s;

		r = mp_store_grow(sessions, max, n + 1, err);
		if (r)
			break;
		s = &sessions[n];
		memset(s, 0, sizeof(*s));
		s->key = sqlite3_column_int64(stmt, 0);
		s->start_s = sqlite3_column_int64(stmt, 1);
		s->last_s = sqlite3_column_int64(stmt, 2);
		copy_text(s->collector, sizeof(s->collector), stmt, 3);
		copy_text(s->why, sizeof(s->why), stmt, 4);
		copy_text(s->event, sizeof(s->event), stmt, 5);
		s->rate_hz = (uint32_t)sqlite3_column_int64(stmt, 6);
		if (n && s->key <= sessions[n - 1].key) {
			r = mp_store_damaged(store, "sessions out of order", err);
			break;
		}
		n++;
	}
	sqlite3_reset(stmt);
	if (r) {
		free(sessions);
		return r;
	}
	*out = sessions;
	*nr = n;
	return 0;
}

int mp_store_list_sessions(struct mp_store *store, struct mp_session **out, size_t *nr,
			   struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t n = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = read_sessions(store, &sessions, &n, err);
	if (!r)
		r = read_ledgers(store, sessions, n, err);
	r = mp_store_leave(store, began, r, err);
	if (r) {
		free(sessions);
		return r;
	}
	if (n)
		qsort(sessions, n, sizeof(*sessions), compare_newest);
	*out = sessions;
	*nr = n;
	return 0;
}
