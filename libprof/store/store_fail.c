// SPDX-License-Identifier: Apache-2.0
/* store_fail - messages of SQLite's errors. */
#include <errno.h>
#include <string.h>

#include "libprof/store/store_private.h"

int mp_store_errno(struct mp_store *store, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL: return ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_FORMAT:
	case SQLITE_TOOBIG:
	case SQLITE_ERROR: return EBADMSG; /* our SQL is right, so the schema is wrong */
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return EBUSY;
	case SQLITE_NOMEM: return ENOMEM;
	case SQLITE_PERM:
	case SQLITE_AUTH: return EACCES;
	case SQLITE_READONLY: return EROFS;
	case SQLITE_CANTOPEN: {
		int code = store->db ? sqlite3_system_errno(store->db) : 0;

		return code ? code : EACCES;
	}
	case SQLITE_IOERR:
		/* No room for the shared memory of the WAL: also a full disk. */
		if (store->db && sqlite3_system_errno(store->db) == ENOSPC)
			return ENOSPC;
		return EIO;
	default: return EIO;
	}
}

/* SQLite reports EIO as damage, too. */
static bool read_failed(struct mp_store *store)
{
	int code = 0;

	return store->db &&
	       sqlite3_file_control(store->db, "main", SQLITE_FCNTL_LAST_ERRNO, &code) ==
		       SQLITE_OK &&
	       code == EIO;
}

int mp_store_fail(struct mp_store *store, int rc, const char *what, struct mp_err *err)
{
	int code = mp_store_errno(store, rc);

	switch (code) {
	case EBADMSG:
		if ((rc & 0xff) == SQLITE_NOTADB)
			return mp_err_set(err, code, "%s: not a database", store->path);
		if (read_failed(store))
			return mp_err_set(err, EIO, "%s: cannot %s: %s", store->path, what,
					  strerror(EIO));
		return mp_err_set(err, code, "%s: damaged: cannot %s: %s", store->path, what,
				  store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
	case EBUSY:
		return mp_err_set(err, code, "%s: cannot %s: another process keeps it locked",
				  store->path, what);
	case EIO: {
		/* SQLite says only "disk I/O error", also for a limit on the size of files. */
		int system = store->db ? sqlite3_system_errno(store->db) : 0;

		return mp_err_set(err, code, "%s: cannot %s: %s", store->path, what,
				  system ? strerror(system) : sqlite3_errstr(rc));
	}
	default:
		return mp_err_set(err, code, "%s: cannot %s: %s", store->path, what,
				  code == ENOMEM ? "out of memory" : strerror(code));
	}
}

int mp_store_exec(struct mp_store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}
