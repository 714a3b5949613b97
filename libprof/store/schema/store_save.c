// SPDX-License-Identifier: Apache-2.0
/*
 * store_save - copies a database before a newer Morph changes its schema, since migrations only go
 * forward. An administrator who goes back to the older Morph puts the copy in place of the
 * database. Called by store_schema.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/newfile.h"
#include "libprof/store/store_private.h"

/* SQLite does not wait for the disk when it copies. */
static int flush(const char *path)
{
	int fd = mp_store_file_open(path, O_RDONLY, 0), ret = 0;

	if (fd < 0 || fsync(fd))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

/* @db is a second connection: it sees what was there before the migration's transaction. */
static int copy(const char *from, const char *to, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	int rc = mp_store_connect(from, SQLITE_OPEN_READONLY, &db);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, "VACUUM INTO ?", -1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(stmt, 1, to, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
	if (rc != SQLITE_OK)
		mp_err_set(err, EIO, "%s: cannot be copied to %s before its schema changes: %s",
			   from, to, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return rc == SQLITE_OK ? 0 : -EIO;
}

/* The directory may be another user's: nothing in it is followed, and only names in it change. */
int mp_store_save(struct mp_store *store, int version, struct mp_err *err)
{
	char new[PATH_MAX + 32], saved[PATH_MAX];
	const char *name;
	struct mp_place place;
	int r;

	if (!*store->path)
		return 0;
	if (snprintf(saved, sizeof(saved), "%s.schema-%d", store->path, version) >=
	    (int)sizeof(saved))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", store->path);
	name = strrchr(saved, '/');
	name = name ? name + 1 : saved;
	snprintf(new, sizeof(new), "%s.%ld.new", saved, (long)getpid());
	r = mp_place_find(new, &place, err);
	if (r)
		return r;
	unlinkat(place.dir, place.name, 0);
	/* The copy belongs to the owner of the directory, as the database does. */
	r = mp_store_make_file(new, err);
	if (!r)
		r = copy(store->path, new, err);
	if (!r) {
		r = flush(new);
		if (!r && renameat(place.dir, place.name, place.dir, name))
			r = -errno;
		if (r)
			mp_err_set(err, -r, "%s: %s", saved, strerror(-r));
	}
	if (r)
		unlinkat(place.dir, place.name, 0);
	close(place.dir);
	return r;
}
