// SPDX-License-Identifier: Apache-2.0
/* backup_debug - writes debug files by temporary file and rename, and removes them again. */
#include "editor/replace/backup_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define TREE "/.build-id/"

/* -EPERM means a refusal here, so the system's EPERM is reported as EACCES. */
static int fail(const char *path, int code, struct mp_err *err)
{
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s: %s", path, strerror(code));
}

/*
 * Open the directory of @path, but not through a link. *@dir: its name, to be freed.
 * Return: a descriptor or -errno.
 */
static int open_directory(const char *path, char **dir)
{
	const char *slash = strrchr(path, '/');
	int fd;

	*dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	if (!*dir)
		return slash ? -ENOMEM : -EINVAL;
	fd = open(*dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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
	char text[2 * MP_BUILD_ID_MAX + 1], *file, *dir, *whole;
	int n, fd;

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
	fd = open_directory(file, &dir);
	free(dir);
	if (fd >= 0)
		close(fd);
	*out = (struct me_backup_debug){.path = file, .made_directory = fd == -ENOENT};
	return 0;
}

/* ---- put ------------------------------------------------------------------------------------ */

/* One file always gets the same temporary name, so that a killed run's file is found again. */
static void name_temporary(const char *base, char *out, size_t size)
{
	snprintf(out, size, ".morph-new.%016" PRIx64, XXH3_64bits(base, strlen(base)));
}

static void sync_parent(int dir_fd)
{
	int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static int make_directory(const char *path, char **dir)
{
	int fd = open_directory(path, dir);

	if (fd != -ENOENT)
		return fd;
	if (mkdir(*dir, 0755) && errno != EEXIST)
		return -errno;
	free(*dir);
	fd = open_directory(path, dir);
	if (fd >= 0)
		sync_parent(fd);
	return fd;
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
	char temporary[40], *dir;
	int dir_fd = make_directory(debug->path, &dir), to = -1, rc = 0;

	if (dir_fd < 0) {
		free(dir);
		return fail(debug->path, -dir_fd, err);
	}
	name_temporary(base, temporary, sizeof(temporary));
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
	close(dir_fd);
	if (rc && debug->made_directory)
		rmdir(dir);
	free(dir);
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
	char temporary[40], *dir;
	const char *base = strrchr(debug->path, '/') + 1;
	int dir_fd = open_directory(debug->path, &dir), fd = -1, rc = 0;
	struct me_digest now;

	if (dir_fd < 0) {
		free(dir);
		return dir_fd == -ENOENT ? 0 : fail(debug->path, -dir_fd, err);
	}
	name_temporary(base, temporary, sizeof(temporary));
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
	close(dir_fd);
	if (debug->made_directory)
		rmdir(dir);
	free(dir);
	return rc ? fail(debug->path, -rc, err) : 0;
}
