// SPDX-License-Identifier: Apache-2.0
/* package_folder - see package_folder.h. */
#include "daemon/fleet/packages/package_folder.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION	     1
#define BUSY_MS	     30000
#define PACKAGES_MAX 64 /* that have one file */

/* Nothing in it is believed: a package is read again before its file is taken. */
static const char schema[] =
	"CREATE TABLE IF NOT EXISTS package(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,"
	" size INTEGER NOT NULL, time_ns INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS file(build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"
	" package INTEGER NOT NULL, PRIMARY KEY (build_id, text_hash, package)) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS file_package ON file(package);"
	"PRAGMA user_version = 1;";

struct search {
	const struct md_package_folder *folder;
	const char *place;
	const struct mp_id *id;
	const char *out;
	sqlite3 *db;
};

/* ---- the database -------------------------------------------------------------------------- */

static int fail_db(const struct search *s, struct mp_err *err)
{
	return mp_err_set(err, EIO, "%s/packages.db: %s", s->folder->cache, sqlite3_errmsg(s->db));
}

static int user_version(sqlite3 *db)
{
	sqlite3_stmt *stmt;
	int version = -1;

	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		version = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return version;
}

static bool try_open(struct search *s, const char *path)
{
	int version;

	if (sqlite3_open_v2(path, &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
			    NULL) != SQLITE_OK)
		return false;
	sqlite3_busy_timeout(s->db, BUSY_MS);
	version = user_version(s->db);
	return (version == VERSION || version == 0) &&
	       sqlite3_exec(s->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) == SQLITE_OK &&
	       (version == VERSION || sqlite3_exec(s->db, schema, NULL, NULL, NULL) == SQLITE_OK);
}

/* One that is damaged, or of another version of Morph, is made again. */
static int open_db(struct search *s, struct mp_err *err)
{
	char *path;
	int r = 0;

	if (asprintf(&path, "%s/packages.db", s->folder->cache) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!try_open(s, path)) {
		int rc = sqlite3_errcode(s->db);

		if (rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT || rc == SQLITE_OK ||
		    rc == SQLITE_ROW || rc == SQLITE_DONE) {
			sqlite3_close(s->db);
			unlink(path);
			r = try_open(s, path) ? 0 : fail_db(s, err);
		} else {
			r = fail_db(s, err);
		}
	}
	free(path);
	return r;
}

static int64_t time_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Return: true: the package was read since it changed last. */
static bool is_known(struct search *s, const char *path, const struct stat *st)
{
	sqlite3_stmt *stmt;
	bool known = false;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT 1 FROM package WHERE path = ? AND size = ? AND time_ns = ?",
			       -1, &stmt, NULL) == SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
		sqlite3_bind_int64(stmt, 2, st->st_size);
		sqlite3_bind_int64(stmt, 3, time_ns(st));
		known = sqlite3_step(stmt) == SQLITE_ROW;
	}
	sqlite3_finalize(stmt);
	return known;
}

static bool note_file(sqlite3_stmt *stmt, const struct mp_id *id, int64_t package)
{
	sqlite3_reset(stmt);
	/* Bytes of a zero-length blob are never looked at, but NULL would be NULL. */
	sqlite3_bind_blob(stmt, 1, id->build_id, id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)id->text_hash);
	sqlite3_bind_int64(stmt, 3, package);
	return sqlite3_step(stmt) == SQLITE_DONE;
}

static bool note_package(struct search *s, const char *path, const struct stat *st)
{
	sqlite3_stmt *stmt = NULL;
	bool ok =
		sqlite3_prepare_v2(
			s->db,
			"DELETE FROM file WHERE package = (SELECT id FROM package WHERE path = ?)",
			-1, &stmt, NULL) == SQLITE_OK;

	if (ok) {
		sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
		ok = sqlite3_step(stmt) == SQLITE_DONE;
	}
	sqlite3_finalize(stmt);
	ok = ok &&
	     sqlite3_prepare_v2(
		     s->db, "INSERT OR REPLACE INTO package(path, size, time_ns) VALUES (?, ?, ?)",
		     -1, &stmt, NULL) == SQLITE_OK;
	if (!ok)
		return false;
	sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, st->st_size);
	sqlite3_bind_int64(stmt, 3, time_ns(st));
	ok = sqlite3_step(stmt) == SQLITE_DONE;
	sqlite3_finalize(stmt);
	return ok;
}

/* In one transaction: a package without its files would hide them. */
static int note(struct search *s, const char *path, const struct stat *st, const struct mp_id *ids,
		size_t nr, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	bool ok = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
	int64_t package;
	int r = 0;

	if (!ok)
		return fail_db(s, err);
	ok = note_package(s, path, st);
	package = sqlite3_last_insert_rowid(s->db);
	ok = ok && sqlite3_prepare_v2(s->db, "INSERT OR IGNORE INTO file VALUES (?, ?, ?)", -1,
				      &stmt, NULL) == SQLITE_OK;
	for (size_t i = 0; i < nr && ok; i++)
		ok = note_file(stmt, &ids[i], package);
	sqlite3_finalize(stmt);
	if (!ok || sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
		r = fail_db(s, err);
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	return r;
}

/* ---- packages ------------------------------------------------------------------------------ */

static bool is_below(const char *path, const char *place)
{
	size_t size = strlen(place);

	return !strncmp(path, place, size) &&
	       (path[size] == '/' || (size && place[size - 1] == '/'));
}

/* Return: 0, -ENOENT: it does not have the file, or cannot be read; -ECANCELED. */
static int take(struct search *s, const char *path, struct mp_err *err)
{
	int r = md_package_files_take(path, path, s->id, s->out, &s->folder->look, err);

	return r == -EBADMSG || r == -ENODATA ? -ENOENT : r;
}

/* Packages of which the database says that they have the file. */
static int take_known(struct search *s, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = -ENOENT;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT path, size, time_ns FROM file JOIN package ON id = package"
			       " WHERE build_id = ? AND text_hash = ? LIMIT ?",
			       -1, &stmt, NULL) != SQLITE_OK)
		return fail_db(s, err);
	sqlite3_bind_blob(stmt, 1, s->id->build_id, s->id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)s->id->text_hash);
	sqlite3_bind_int(stmt, 3, PACKAGES_MAX);
	while (r == -ENOENT && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *path = (const char *)sqlite3_column_text(stmt, 0);
		struct stat st;

		if (path && is_below(path, s->place) && !lstat(path, &st) && S_ISREG(st.st_mode) &&
		    st.st_size == sqlite3_column_int64(stmt, 1) &&
		    time_ns(&st) == sqlite3_column_int64(stmt, 2))
			r = take(s, path, err);
	}
	sqlite3_finalize(stmt);
	return r;
}

/* Reads a package that is not known yet. Return: as take(). */
static int see_package(struct search *s, const char *path, const struct stat *st,
		       struct mp_err *err)
{
	const struct md_package_folder *f = s->folder;
	struct mp_id *ids;
	struct mp_err why = {""};
	bool has = false;
	size_t nr;
	int r = md_package_files_list(path, f->dir, &f->look, &ids, &nr, &why);

	/* A package that cannot be read now may be readable later: only damage is remembered. */
	if (r == -ECANCELED || r == -EPERM)
		return mp_err_set(err, -r, "%s", why.msg);
	if (r)
		f->say(f->say_arg, why.msg);
	for (size_t i = 0; i < nr; i++)
		has |= mp_id_equal(&ids[i], s->id);
	if (!r || r == -EBADMSG)
		r = note(s, path, st, ids, nr, err);
	else
		r = 0;
	free(ids);
	return r ? r : has ? take(s, path, err) : -ENOENT;
}

static bool is_package(const FTSENT *entry)
{
	return entry->fts_info == FTS_F && entry->fts_namelen > 4 &&
	       !strcmp(entry->fts_name + entry->fts_namelen - 4, ".deb");
}

static int take_new(struct search *s, struct mp_err *err)
{
	const struct md_package_look *look = &s->folder->look;
	char *root = strdup(s->place);
	FTS *tree = root ? fts_open((char *[]){root, NULL},
				    FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL)
			 : NULL;
	FTSENT *entry;
	int r = -ENOENT;

	while (tree && r == -ENOENT && (entry = fts_read(tree))) {
		if (!is_package(entry) || is_known(s, entry->fts_path, entry->fts_statp))
			continue;
		if (look->look && look->look(look->arg))
			r = mp_err_set(err, ECANCELED, "the work was stopped");
		else
			r = see_package(s, entry->fts_path, entry->fts_statp, err);
	}
	if (tree)
		fts_close(tree);
	free(root);
	return r;
}

int md_package_folder_take(const struct md_package_folder *folder, const char *place,
			   const struct mp_id *id, const char *out, struct mp_err *err)
{
	struct search s = {.folder = folder, .place = place, .id = id, .out = out};
	int r = open_db(&s, err);

	if (!r)
		r = take_known(&s, err);
	if (r == -ENOENT)
		r = take_new(&s, err);
	sqlite3_close(s.db);
	return r;
}
