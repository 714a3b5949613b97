// SPDX-License-Identifier: Apache-2.0
/*
 * store_files - opens and removes the files of a database for SQLite. A database may lie in a directory
 * of another user, who could put links, journals and pipes there; see store_private.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/newfile.h"
#include "libprof/store/store_private.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sqlite3_vfs *system_vfs, own_vfs;
static int prepared; /* SQLITE_OK, or why SQLite could not be */

int mp_store_file_open(const char *path, int flags, int mode)
{
	struct mp_place place;
	struct stat dir, st;
	int fd, code = 0, rc = mp_place_find(path, &place, NULL);

	if (rc) {
		errno = -rc;
		return -1;
	}
	fd = openat(place.dir, place.name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		    mode);
	if (fd < 0 || fstat(fd, &st) || fstat(place.dir, &dir))
		code = errno;
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		code = EPERM;
	/*
	 * With a second name it may be a file that the directory's owner may not change. Nor may it be
	 * read: SQLite gives journals to the database's owner.
	 */
	else if (S_ISREG(st.st_mode) && st.st_nlink != 1 && (dir.st_uid || (dir.st_mode & 022)))
		code = EMLINK;
	close(place.dir);
	if (!code)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = code;
	return -1;
}

/* Who is not root has no more rights than needed; SQLite follows no link at the end of a name. */
static int open_file(const char *path, int flags, int mode)
{
	if (geteuid() || !strcmp(path, "/dev/urandom"))
		return open(path, flags, mode);
	return mp_store_file_open(path, flags, mode);
}

static int remove_file(const char *path)
{
	struct mp_place place;
	int rc;

	if (geteuid())
		return unlink(path);
	rc = mp_place_find(path, &place, NULL);
	if (!rc) {
		rc = unlinkat(place.dir, place.name, 0) ? -errno : 0;
		close(place.dir);
	}
	errno = -rc;
	return rc ? -1 : 0;
}

/* SQLite resolves the links of a name before it opens it. */
static ssize_t read_link(const char *path, char *buf, size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int fd;

	if (geteuid())
		return readlink(path, buf, size);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_uid != 0)
		errno = EPERM;
	else
		n = readlinkat(fd, "", buf, size);
	close(fd);
	return n;
}

/*
 * A journal may name another one, of a transaction in several databases. SQLite opens that file, and
 * removes it afterwards, wherever it lies. Morph writes no such journal.
 */
static int open_for(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
	(void)vfs;
	if (!(flags & SQLITE_OPEN_SUPER_JOURNAL))
		return system_vfs->xOpen(system_vfs, name, file, flags, given);
	file->pMethods = NULL;
	return SQLITE_CORRUPT;
}

static void prepare(void)
{
	prepared = sqlite3_initialize();
	system_vfs = prepared == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;
	if (!system_vfs || system_vfs->iVersion < 3)
		return;
	own_vfs = *system_vfs;
	own_vfs.zName = MP_STORE_VFS;
	own_vfs.pNext = NULL;
	own_vfs.xOpen = open_for;
	if (!system_vfs->xSetSystemCall(system_vfs, "open", (sqlite3_syscall_ptr)open_file) &&
	    !system_vfs->xSetSystemCall(system_vfs, "unlink", (sqlite3_syscall_ptr)remove_file) &&
	    !system_vfs->xSetSystemCall(system_vfs, "readlink", (sqlite3_syscall_ptr)read_link))
		prepared = sqlite3_vfs_register(&own_vfs, 0);
}

int mp_store_connect(const char *name, int flags, sqlite3 **db)
{
	/* Without its own way to files, "no such vfs" is the error. */
	pthread_once(&once, prepare);
	if (prepared != SQLITE_OK)
		return prepared;
	return sqlite3_open_v2(name, db, flags, MP_STORE_VFS);
}
