// SPDX-License-Identifier: Apache-2.0
/* newfile - walks a name part by part and checks each symbolic link; see newfile.h. */
#include "libprof/base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define LINKS_MAX 40

/* State of a walk: @rest is the part of the name that is left. */
struct walk {
	int dir;
	char *rest;
	unsigned int nr_links;
};

static int enter(struct walk *w, const char *name)
{
	int fd = openat(w->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (w->dir >= 0)
		close(w->dir);
	w->dir = fd;
	return 0;
}

/* Replaces the link @name by its target. Return: -EPERM: the link belongs to another user. */
static int follow(struct walk *w, const char *name, const struct stat *st, const char *behind)
{
	char target[PATH_MAX], *rest;
	ssize_t n;
	int fd;

	if (st->st_uid != 0 && st->st_uid != geteuid())
		return -EPERM;
	if (++w->nr_links > LINKS_MAX)
		return -ELOOP;
	/* Read the same link that was checked. */
	fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = readlinkat(fd, "", target, sizeof(target) - 1);
	close(fd);
	if (n <= 0)
		return n ? -errno : -ENOENT;
	target[n] = '\0';
	if (asprintf(&rest, "%s%s%s", target, *behind ? "/" : "", behind) < 0)
		return -ENOMEM;
	free(w->rest);
	w->rest = rest;
	return target[0] == '/' ? enter(w, "/") : 0;
}

static int step(struct walk *w, struct mp_place *place)
{
	char *name = w->rest + strspn(w->rest, "/"), *end = name + strcspn(name, "/");
	const char *behind = end + strspn(end, "/");
	char part[NAME_MAX + 1];
	struct stat st;
	int rc;

	if (!*name)
		return -EISDIR;
	if ((size_t)(end - name) >= sizeof(part))
		return -ENAMETOOLONG;
	snprintf(part, sizeof(part), "%.*s", (int)(end - name), name);
	rc = fstatat(w->dir, part, &st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	if (!rc && S_ISLNK(st.st_mode))
		return follow(w, part, &st, behind);
	if (!*end && (!rc || rc == -ENOENT)) {
		strcpy(place->name, part);
		return 1;
	}
	if (!rc)
		rc = enter(w, part);
	if (!rc)
		memmove(w->rest, behind, strlen(behind) + 1);
	return rc;
}

int mp_place_find(const char *path, struct mp_place *place, struct mp_err *err)
{
	struct walk w = {.dir = -1, .rest = strdup(path)};
	int rc;

	w.dir = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = !w.rest ? -ENOMEM : w.dir < 0 ? -errno : *path ? 0 : -ENOENT;
	while (!rc)
		rc = step(&w, place);
	free(w.rest);
	if (rc > 0) {
		place->dir = w.dir;
		return 0;
	}
	if (w.dir >= 0)
		close(w.dir);
	if (rc == -EPERM)
		return mp_err_set(err, EPERM,
				  "%s: a symbolic link that belongs to another user: not followed",
				  path);
	return mp_err_set(err, -rc, "%s: %s", path, strerror(-rc));
}

int mp_directory_open(const char *path, struct mp_err *err)
{
	struct mp_place place;
	char dir[PATH_MAX];
	int rc;

	/* The dot makes the walk enter the last directory. */
	if (snprintf(dir, sizeof(dir), "%.*s.", (int)(basename(path) - path), path) >=
	    (int)sizeof(dir))
		return mp_err_set(err, ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
	if (geteuid()) {
		rc = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return rc < 0 ? mp_err_set(err, errno, "%s: %s", path, strerror(errno)) : rc;
	}
	rc = mp_place_find(dir, &place, err);
	if (rc && rc != -EPERM)
		mp_err_set(err, -rc, "%s: %s", path, strerror(-rc));
	return rc ? rc : place.dir;
}

int mp_directory_check(const char *path, struct mp_err *err)
{
	int fd = mp_directory_open(path, err);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Opens a pipe or device. Its owner can read the output, so it must belong to us or root. */
static int open_special(const char *path, const struct mp_place *place, const struct stat *st,
			struct mp_err *err)
{
	int fd;

	if (S_ISDIR(st->st_mode))
		return mp_err_set(err, EISDIR, "%s: %s", path, strerror(EISDIR));
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return mp_err_set(err, EPERM, "%s: not a regular file, and another user's", path);
	/* O_NONBLOCK: nobody waits for a FIFO's reader. Writing may wait. */
	fd = openat(place->dir, place->name,
		    O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENXIO && S_ISFIFO(st->st_mode))
		return mp_err_set(err, ENXIO, "%s: a FIFO that no program reads", path);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	fcntl(fd, F_SETFL, 0);
	return fd;
}

static int open_beside(const struct mp_place *place, mode_t mode, char *name, size_t size)
{
	for (unsigned int i = 0; i < 100; i++) {
		int fd;

		snprintf(name, size, ".morph-%d-%u.tmp", (int)getpid(), i);
		fd = openat(place->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    mode);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

/* Truncates a file of ours without other names, in a directory that we may not change. */
static int truncate_own(const struct mp_place *place, const struct stat *st)
{
	int fd;

	if (st->st_uid != geteuid() || st->st_nlink != 1)
		return -EACCES;
	fd = openat(place->dir, place->name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * True for names like /dev/stdout: links of the kernel, whose targets are not names in the
 * file system.
 */
static bool is_magic(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n > 0)
		target[n] = '\0';
	return !strncmp(path, "/proc/self/fd/", 14) || !strncmp(path, "/dev/fd/", 8) ||
	       (n > 0 && !strncmp(path, "/dev/", 5) && !strncmp(target, "/proc/self/fd/", 14));
}

int mp_newfile_open(const char *path, mode_t mode, struct mp_err *err)
{
	struct mp_place place;
	char temporary[64];
	struct stat st;
	bool there;
	int fd, rc;

	if (is_magic(path)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? mp_err_set(err, errno, "%s: %s", path, strerror(errno)) : fd;
	}
	rc = mp_place_find(path, &place, err);
	if (rc)
		return rc;
	there = !fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW);
	if (there && !S_ISREG(st.st_mode)) {
		fd = open_special(path, &place, &st, err);
		close(place.dir);
		return fd;
	}
	fd = open_beside(&place, mode, temporary, sizeof(temporary));
	if ((fd == -EACCES || fd == -EPERM || fd == -EROFS) && there)
		fd = truncate_own(&place, &st);
	else if (fd >= 0 && renameat(place.dir, temporary, place.dir, place.name)) {
		rc = errno;
		unlinkat(place.dir, temporary, 0);
		close(fd);
		fd = -rc;
	}
	close(place.dir);
	return fd < 0 ? mp_err_set(err, -fd, "%s: %s", path, strerror(-fd)) : fd;
}

void mp_new_name(const char *base, char *out)
{
	snprintf(out, MP_NEW_NAME_MAX, ".morph-new.%016" PRIx64,
		 (uint64_t)XXH3_64bits(base, strlen(base)));
}

void mp_kept_name(const char *base, char *out)
{
	snprintf(out, MP_NEW_NAME_MAX, ".morph-kept.%016" PRIx64,
		 (uint64_t)XXH3_64bits(base, strlen(base)));
}
