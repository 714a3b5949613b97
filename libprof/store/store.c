// SPDX-License-Identifier: Apache-2.0
/*
 * store - opens and closes the database. It decides how the database is opened (WAL, read only, on
 * media that cannot be written) and what SQLite's errors mean. store_transaction.c has transactions,
 * the other store_*.c files decide about the tables. Called by daemon and editor.
 */
#include "libprof/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/newfile.h"
#include "libprof/store/store_private.h"

#define BUSY_TIMEOUT_MS 10000

/* ---- paths --------------------------------------------------------------------------------- */

static int make_directories(char *path, mode_t mode, struct mp_err *err)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, mode) && errno != EEXIST) {
			int code = errno;

			mp_err_set(err, code, "%s: cannot make the directory: %s", path,
				   strerror(code));
			*slash = '/';
			return -code;
		}
		*slash = '/';
	}
	return 0;
}

int mp_store_default_path(char *buf, size_t size, bool make, struct mp_err *err)
{
	const char *db = getenv("MORPH_DB");
	int n;

	if (db && *db) {
		n = snprintf(buf, size, "%s", db);
		make = false; /* the user named this path and makes its directories */
	} else if (geteuid() == 0) {
		n = snprintf(buf, size, MP_STORE_SERVICE_PATH);
	} else {
		return mp_store_own_path(buf, size, make, err);
	}
	if (n < 0 || (size_t)n >= size)
		return mp_err_set(err, ENAMETOOLONG, "the path of the database is too long");
	return make ? make_directories(buf, 0755, err) : 0;
}

int mp_store_own_path(char *buf, size_t size, bool make, struct mp_err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/') {
		/* The XDG specification says to ignore a relative path. */
		n = snprintf(buf, size, "%s/morph/morph.db", state);
	} else if (home && home[0] == '/') {
		n = snprintf(buf, size, "%s/.local/state/morph/morph.db", home);
	} else {
		return mp_err_set(err, ENOENT, "HOME is not set: give the database with --db");
	}
	if (n < 0 || (size_t)n >= size)
		return mp_err_set(err, ENAMETOOLONG, "the path of the database is too long");
	return make ? make_directories(buf, 0700, err) : 0;
}

/*
 * Largest uid of a system user. An ordinary user's file is 0600, since samples tell what
 * the user runs. A system service lets its group read; the administrator decides who is in
 * it.
 */
#define SYSTEM_UID_MAX 999

int mp_store_make_file(const char *path, struct mp_err *err)
{
	struct mp_place place;
	struct stat dir;
	int fd, rc = mp_place_find(path, &place, err);

	if (rc)
		return rc;
	if (fstat(place.dir, &dir))
		dir.st_uid = geteuid();
	/* Only a file that we made ourselves changes its owner: a link there may lead anywhere. */
	fd = openat(place.dir, place.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    geteuid() <= SYSTEM_UID_MAX ? 0640 : 0600);
	rc = fd < 0 && errno != EEXIST ? -errno : 0;
	if (fd >= 0 && !geteuid() && dir.st_uid)
		(void)!fchown(fd, dir.st_uid, dir.st_gid);
	if (fd >= 0)
		close(fd);
	close(place.dir);
	return rc ? mp_err_set(err, -rc, "%s: cannot create: %s", path, strerror(-rc)) : 0;
}

/* ---- errors -------------------------------------------------------------------------------- */

int mp_store_damaged(struct mp_store *store, const char *what, struct mp_err *err)
{
	return mp_err_set(err, EBADMSG, "%s: damaged: %s", store->path, what);
}

int mp_store_check_none(struct mp_store *store, const char *sql, const char *what,
			struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int64_t nr = 0;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		nr = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	if (rc != SQLITE_ROW)
		return mp_store_fail(store, rc, "check", err);
	return nr ? mp_store_damaged(store, what, err) : 0;
}

/* ---- open, close --------------------------------------------------------------------------- */

/* A database may come from a stranger: nothing in it may reach beyond its own tables. */
static int harden(struct mp_store *store)
{
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, 16 << 20);
	sqlite3_limit(store->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
	sqlite3_extended_result_codes(store->db, 1);
	return mp_store_exec(store, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY");
}

static int is_wal(struct mp_store *store, bool *wal)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		*wal = !strcmp((const char *)sqlite3_column_text(stmt, 0), "wal");
		rc = SQLITE_OK;
	}
	sqlite3_finalize(stmt);
	return rc;
}

/*
 * synchronous=NORMAL: a commit costs no fsync. A killed process loses nothing that was
 * committed. A power cut loses at most the changes after the last checkpoint, and never
 * damages the file. Steps of jobs are an exception: see mp_store_enter_durably(). The WAL is kept small, since it counts as size, too.
 */
static int configure_writer(struct mp_store *store)
{
	bool wal = false;
	int rc = is_wal(store, &wal);

	if (rc == SQLITE_OK && !wal)
		rc = mp_store_exec(store,
				   "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL");
	/*
	 * If two processes create it at once, the second finds it locked and waits until it
	 * is made.
	 */
	for (int i = 0; (rc & 0xff) == SQLITE_BUSY && i < 50; i++) {
		usleep(20000);
		rc = mp_store_exec(store, "PRAGMA journal_mode=WAL");
	}
	if (rc == SQLITE_OK)
		rc = mp_store_exec(store,
				   "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=256;"
				   "PRAGMA journal_size_limit=1048576");
	return rc;
}

static bool wal_has_content(const char *path)
{
	struct stat st;
	char *name = sqlite3_mprintf("%s-wal", path);
	bool content = name && !stat(name, &st) && st.st_size > 0;

	sqlite3_free(name);
	return content;
}

/* A file: URI of @path, with special characters escaped. */
static char *immutable_uri(const char *path)
{
	sqlite3_str *uri = sqlite3_str_new(NULL);

	sqlite3_str_appendall(uri, "file:");
	for (const char *p = path; *p; p++) {
		if (*p == '%' || *p == '?' || *p == '#')
			sqlite3_str_appendf(uri, "%%%02x", (unsigned char)*p);
		else
			sqlite3_str_appendchar(uri, 1, *p);
	}
	sqlite3_str_appendall(uri, "?immutable=1");
	return sqlite3_str_finish(uri);
}

static int open_handle(struct mp_store *store, const char *name, int flags, const char *probe)
{
	int rc = mp_store_connect(name, flags, &store->db);

	if (rc == SQLITE_OK)
		rc = harden(store);
	if (rc == SQLITE_OK)
		rc = mp_store_exec(store, probe);
	return rc;
}

/*
 * When root reads an idle database of another user, SQLite makes the -wal and -shm files as root's
 * and gives them to the database's owner a moment later. A writer that comes in between may not open
 * them: try again for a second.
 */
static int open_writer(struct mp_store *store, const char *path)
{
	static const struct timespec pause = {0, 20000000};
	/* "" is SQLite's name for a private temporary database. */
	int flags = SQLITE_OPEN_READWRITE | (*path ? 0 : SQLITE_OPEN_CREATE);

	for (int attempt = 0;; attempt++) {
		int rc = open_handle(store, path, flags, "SELECT count(*) FROM sqlite_master");

		if (rc == SQLITE_OK)
			rc = configure_writer(store);
		if (((rc & 0xff) != SQLITE_CANTOPEN && (rc & 0xff) != SQLITE_READONLY) ||
		    attempt == 50)
			return rc;
		sqlite3_close(store->db);
		store->db = NULL;
		nanosleep(&pause, NULL);
	}
}

static int open_reader(struct mp_store *store)
{
	const char *probe = "SELECT count(*) FROM sqlite_master";
	char *uri;
	int rc = open_handle(store, store->path, SQLITE_OPEN_READONLY, probe);

	/*
	 * A WAL database needs its -shm file even for reading. If that file cannot be made
	 * (read-only media, a directory of another user) and there is no WAL, then nobody
	 * writes: read the file as it is.
	 */
	if ((rc & 0xff) != SQLITE_CANTOPEN && (rc & 0xff) != SQLITE_READONLY)
		return rc;
	if (wal_has_content(store->path))
		return rc;
	uri = immutable_uri(store->path);
	if (!uri)
		return SQLITE_NOMEM;
	sqlite3_close(store->db);
	store->db = NULL;
	rc = open_handle(store, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, probe);
	sqlite3_free(uri);
	return rc;
}

/* Reports the refusal, and which users may read the file. */
static int refused(const char *path, const struct stat *st, enum mp_store_mode mode, int code,
		   struct mp_err *err)
{
	const struct group *group = getgrgid(st->st_gid);

	if (code != EACCES || mode != MP_STORE_READ || !(st->st_mode & S_IRGRP) || !group)
		return mp_err_set(err, code, "%s: %s", path, strerror(code));
	return mp_err_set(err, code, "%s: %s: root and the members of the group %s may read it",
			  path, strerror(code), group->gr_name);
}

/* Finds problems that SQLite would only call "unable to open". */
static int check_file(const char *path, enum mp_store_mode mode, struct mp_err *err)
{
	struct stat st;
	int code;

	if (!stat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return mp_err_set(err, EBADMSG, "%s: not a regular file", path);
		/*
		 * Test with the effective rights, as open() will: a service's rights come
		 * from capabilities.
		 */
		if (faccessat(AT_FDCWD, path, mode == MP_STORE_WRITE ? R_OK | W_OK : R_OK,
			      AT_EACCESS)) {
			code = errno;
			return refused(path, &st, mode, code, err);
		}
		if (mode == MP_STORE_READ && !st.st_size && !wal_has_content(path))
			return mp_err_set(err, ENOENT, "%s: empty, nothing was ever stored", path);
		return 0;
	}
	code = errno;
	if (code == ENOENT && mode == MP_STORE_WRITE)
		return 0;
	if (code == ENOENT)
		return mp_err_set(err, code, "%s: no such database", path);
	return mp_err_set(err, code, "%s: %s", path, strerror(code));
}

/* Of a link that root does not follow, SQLite would only say "unable to open". */
static int check_links(const char *path, struct mp_err *err)
{
	struct mp_place place;
	int r = geteuid() ? -ENOENT : mp_place_find(path, &place, err);

	if (!r)
		close(place.dir);
	return r == -EPERM ? r : 0;
}

int mp_store_check_place(const char *path, struct mp_err *err)
{
	static const char magic[] = "SQLite format 3";
	char start[sizeof(magic)];
	struct mp_place place;
	int fd, r = check_file(path, MP_STORE_WRITE, err);
	ssize_t n;

	if (r)
		return r;
	r = mp_place_find(path, &place, err);
	if (r)
		return r;
	/* Nothing of this process is open there, so that closing it drops no lock of SQLite's. */
	fd = openat(place.dir, place.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(place.dir);
	if (fd < 0)
		return 0;
	n = pread(fd, start, sizeof(start), 0);
	close(fd);
	if (n > 0 && memcmp(start, magic, (size_t)n))
		return mp_err_set(err, EBADMSG, "%s: not a database", path);
	return 0;
}

int mp_store_open(const char *path, enum mp_store_mode mode, struct mp_store **out,
		  struct mp_err *err)
{
	struct mp_store *store;
	int rc, r;

	r = mode == MP_STORE_READ ? check_links(path, err) : 0;
	if (!r)
		r = check_file(path, mode, err);
	if (r)
		return r;
	store = calloc(1, sizeof(*store));
	if (!store)
		return mp_err_set(err, ENOMEM, "%s: out of memory", path);
	store->writable = mode == MP_STORE_WRITE;
	store->path = strdup(path);
	if (!store->path) {
		r = mp_err_set(err, ENOMEM, "%s: out of memory", path);
		goto close;
	}
	if (store->writable) {
		r = *path ? mp_store_make_file(path, err) : 0;
		if (r)
			goto close;
		rc = open_writer(store, path);
	} else {
		rc = open_reader(store);
	}
	if (rc != SQLITE_OK) {
		if (!store->writable && wal_has_content(path) && (rc & 0xff) != SQLITE_NOTADB &&
		    mp_store_errno(store, rc) != EBADMSG)
			r = mp_err_set(err, mp_store_errno(store, rc),
				       "%s: a writer was killed and left %s-wal, which cannot be "
				       "read here: copy both to a directory you can write",
				       path, path);
		else
			r = mp_store_fail(store, rc, "open", err);
		goto close;
	}
	r = store->writable ? mp_store_create(store, err) : mp_store_check_schema(store, err);
	if (r)
		goto close;
	*out = store;
	return 0;
close:
	mp_store_close(store);
	return r;
}

void mp_store_close(struct mp_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < MP_NR_STMT; i++)
		sqlite3_finalize(store->stmts[i]);
	sqlite3_close(store->db);
	free(store->scratch.entries[0].data);
	free(store->scratch.entries[1].data);
	free(store->scratch.bytes.data);
	free(store->path);
	free(store);
}

/* ---- changes by others ---------------------------------------------------------------------- */

bool mp_store_was_changed(struct mp_store *store)
{
	sqlite3_stmt *stmt = NULL;
	int version = 0;
	bool changed;

	/* SQLite's number of the database's content, as this connection sees it. */
	if (sqlite3_prepare_v2(store->db, "PRAGMA data_version", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		version = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	changed = !version || version != store->data_version;
	store->data_version = version;
	return changed;
}

/* ---- statements ---------------------------------------------------------------------------- */

int mp_store_stmt(struct mp_store *store, enum mp_stmt which, const char *sql, sqlite3_stmt **out,
		  struct mp_err *err)
{
	sqlite3_stmt **stmt = &store->stmts[which];
	int rc;

	if (!*stmt) {
		rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
		if (rc != SQLITE_OK)
			return mp_store_fail(store, rc, "read", err);
	}
	sqlite3_reset(*stmt);
	sqlite3_clear_bindings(*stmt);
	*out = *stmt;
	return 0;
}

int mp_store_step(struct mp_store *store, sqlite3_stmt *stmt, const char *what, struct mp_err *err)
{
	int rc = sqlite3_step(stmt), r = 0;

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		r = mp_store_fail(store, rc, what, err);
	sqlite3_reset(stmt);
	return r;
}

int mp_store_run(struct mp_store *store, sqlite3_stmt *stmt, const char *what, struct mp_err *err)
{
	int r = mp_store_step(store, stmt, what, err);

	if (r > 0) {
		sqlite3_reset(stmt);
		return mp_store_damaged(store, "an unexpected row", err);
	}
	return r;
}

uint64_t mp_store_size_bytes(struct mp_store *store)
{
	static const char *const suffixes[] = {"", "-wal"};
	uint64_t size = 0;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *name = sqlite3_mprintf("%s%s", store->path, suffixes[i]);
		struct stat st;

		if (name && !stat(name, &st))
			size += (uint64_t)st.st_size;
		sqlite3_free(name);
	}
	return size;
}
