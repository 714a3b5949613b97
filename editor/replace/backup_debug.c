// SPDX-License-Identifier: Apache-2.0
/* backup_debug - writes debug files by temporary file and rename, and removes them again. */
#include "editor/replace/backup_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/newfile.h"

#define TREE "/.build-id/"

/* -EPERM means a refusal here, so the system's EPERM is reported as EACCES. */
static int fail(const char *path, int code, struct mp_err *err)
{
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s: %s", path, strerror(code));
}

/*
 * The directory of a file, which need not be there, and the directory that has it. Nobody can lead root elsewhere: the
 * name is walked part by part.
 */
struct folder {
	int parent;	   /* O_PATH */
	int fd;		   /* -1: there is none */
	char *name;	   /* of fd in parent */
	struct mp_err why; /* without a parent: the reason, or no message */
};

/* Reports that the folder of @path could not be opened. */
static int fail_folder(const struct folder *folder, const char *path, int code, struct mp_err *err)
{
	if (!folder->why.msg[0])
		return fail(path, code, err);
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s", folder->why.msg);
}

static void close_folder(struct folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	if (folder->parent >= 0)
		close(folder->parent);
	free(folder->name);
}

static int enter_folder(struct folder *folder)
{
	folder->fd = openat(folder->parent, folder->name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return folder->fd < 0 ? -errno : 0;
}

/*
 * Opens the directory of @path, but not through a link. Return: 0; -errno; -ENOENT with a parent: there is none.
 * Ownership: close_folder(), also after an error.
 */
static int open_folder(const char *path, struct folder *folder)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;

	*folder = (struct folder){.parent = -1, .fd = -1};
	if (!dir)
		return slash ? -ENOMEM : -EINVAL;
	folder->parent = mp_directory_open(dir, &folder->why);
	folder->name = strdup(basename(dir));
	free(dir);
	if (folder->parent < 0)
		return folder->parent;
	return folder->name ? enter_folder(folder) : -ENOMEM;
}

/* The last part of @path may be a link out of a tree of build-ids, so it is not followed. */
static int make_absolute(const char *path, char **out)
{
	const char *slash = strrchr(path, '/');
	char *copy = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *dir = copy ? realpath(copy, NULL) : NULL;
	int rc = dir ? 0 : -errno;

	if (dir && asprintf(out, "%s/%s", dir, slash ? slash + 1 : path) < 0)
		rc = -ENOMEM;
	free(copy);
	free(dir);
	return rc;
}

int me_backup_debug_place(const char *path, const char *debug, const struct mp_id *id,
			  struct me_backup_debug *out)
{
	const char *slash = strrchr(path, '/'), *tree = NULL;
	char text[2 * MP_BUILD_ID_MAX + 1], *file, *whole;
	struct folder folder;
	int n;

	n = make_absolute(debug, &whole);
	if (n)
		return n;
	mp_id_format_build_id(id, text);
	for (const char *next = whole; (next = strstr(next, TREE)); next++)
		tree = next;
	if (tree)
		n = asprintf(&file, "%.*s%.2s/%s.debug", (int)(tree - whole + strlen(TREE)), whole,
			     text, text + 2);
	else
		n = asprintf(&file, "%.*s/.debug/%s.debug", (int)(slash - path), path, text + 2);
	free(whole);
	if (n < 0)
		return -ENOMEM;
	n = open_folder(file, &folder);
	close_folder(&folder);
	*out = (struct me_backup_debug){.path = file, .made_directory = n == -ENOENT};
	return 0;
}

/* ---- put ------------------------------------------------------------------------------------ */

static void sync_parent(int dir_fd)
{
	int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static int make_folder(const char *path, struct folder *folder)
{
	int rc = open_folder(path, folder);

	if (rc != -ENOENT || folder->parent < 0)
		return rc;
	if (mkdirat(folder->parent, folder->name, 0755) && errno != EEXIST)
		return -errno;
	rc = enter_folder(folder);
	if (!rc)
		sync_parent(folder->fd);
	return rc;
}

/* Copy, check the digest, and take owner and mode (but no execute bits) from @like. */
static int copy(int from, int to, const char *like, const struct me_digest *digest)
{
	struct me_digest copied;
	struct stat st;
	int rc = me_digest_copy(from, to, &copied, NULL);

	if (rc)
		return rc;
	if (!me_digest_equal(&copied, digest))
		return -EIO;
	if (stat(like, &st) || (geteuid() == 0 && fchown(to, st.st_uid, st.st_gid)) ||
	    fchmod(to, st.st_mode & 0666) || fsync(to))
		return -errno;
	return 0;
}

static int put(const struct me_backup_debug *debug, int fd, const char *like, struct mp_err *err)
{
	const char *base = strrchr(debug->path, '/') + 1;
	char temporary[MP_NEW_NAME_MAX];
	struct folder folder;
	int rc = make_folder(debug->path, &folder), dir_fd = folder.fd, to;

	if (rc) {
		close_folder(&folder);
		return fail_folder(&folder, debug->path, -rc, err);
	}
	mp_new_name(base, temporary);
	unlinkat(dir_fd, temporary, 0);
	to = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = to < 0 ? -errno : copy(fd, to, like, &debug->digest);
	if (to >= 0)
		close(to);
	if (!rc && renameat(dir_fd, temporary, dir_fd, base))
		rc = -errno;
	/* EINVAL: directories of this file system need no sync. */
	if (!rc && fsync(dir_fd) && errno != EINVAL)
		rc = -errno;
	if (rc && to >= 0)
		unlinkat(dir_fd, temporary, 0);
	if (rc && debug->made_directory)
		unlinkat(folder.parent, folder.name, AT_REMOVEDIR);
	close_folder(&folder);
	return rc ? fail(debug->path, -rc, err) : 0;
}

int me_backup_debug_put(const struct me_backup_debug *debug, int fd, const char *like,
			struct mp_err *err)
{
	sigset_t mask, old;
	int rc;

	/* Delay Ctrl-C until no temporary file can be left behind. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, &old);
	rc = put(debug, fd, like, err);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* ---- remove --------------------------------------------------------------------------------- */

int me_backup_debug_remove(const struct me_backup_debug *debug, struct mp_err *err)
{
	char temporary[MP_NEW_NAME_MAX];
	const char *base = strrchr(debug->path, '/') + 1;
	struct folder folder;
	int rc = open_folder(debug->path, &folder), dir_fd = folder.fd, fd;
	struct me_digest now;

	if (rc) {
		close_folder(&folder);
		return rc == -ENOENT ? 0 : fail_folder(&folder, debug->path, -rc, err);
	}
	mp_new_name(base, temporary);
	unlinkat(dir_fd, temporary, 0);
	fd = openat(dir_fd, base, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		rc = me_digest_copy(fd, -1, &now, NULL);
	else if (errno != ENOENT && errno != ELOOP)
		rc = -errno;
	if (fd >= 0 && !rc && me_digest_equal(&now, &debug->digest) && unlinkat(dir_fd, base, 0))
		rc = -errno;
	fsync(dir_fd);
	if (fd >= 0)
		close(fd);
	if (debug->made_directory)
		unlinkat(folder.parent, folder.name, AT_REMOVEDIR);
	close_folder(&folder);
	return rc ? fail(debug->path, -rc, err) : 0;
}
