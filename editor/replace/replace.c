// SPDX-License-Identifier: Apache-2.0
/*
 * replace - the steps are: lock, nameless file, attributes, fsync, link, rename, fsync.
 *
 * If Morph is killed before the rename, the old file is there; after it, the new one. Between
 * link and rename (two calls) the new file, complete and with its attributes, has a second
 * name.
 */
#include "editor/replace/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libprof/elf/own_output.h"

enum {
	TRIES = 16, /* attempts to lock the file at a path that others replace */
};

/* -EPERM is a refusal, so what the system does not permit is reported as -EACCES. */
static int fail(const struct me_replace *r, int code, struct mp_err *err)
{
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s: %s", r->path, strerror(code));
}

/* Closes @dir_fd. Return: its directory @name, which is no symbolic link; -1 with errno. */
static int open_part(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), code = errno;
	struct stat st = {0};

	close(dir_fd);
	if (fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode))
		return fd;
	if (fd >= 0) {
		code = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
		close(fd);
	}
	errno = code;
	return -1;
}

/*
 * Opens the directories of the path one in the other, so that nobody can swap one in between. Not
 * openat2(): systemd forbids it to services with RestrictSUIDSGID=, such as morph-optimize.service.
 */
static int open_without_symlinks(const char *dir)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), last;
	char *copy = strdup(dir), *rest = copy, *name;

	if (!copy)
		errno = ENOMEM;
	while (copy && fd >= 0 && (name = strsep(&rest, "/")))
		if (*name)
			fd = open_part(fd, name);
	last = copy && fd >= 0 ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		int code = errno;

		close(fd);
		errno = code;
	}
	free(copy);
	return last;
}

static int open_directory(struct me_replace *r, const char *path, struct mp_err *err)
{
	const bool no_symlinks = r->flags & ME_REPLACE_NO_SYMLINKS;
	struct stat st;
	char *slash;

	r->through_link = !lstat(path, &st) && S_ISLNK(st.st_mode);
	r->path = no_symlinks ? strdup(path) : realpath(path, NULL);
	if (no_symlinks && (path[0] != '/' || r->through_link))
		return mp_err_set(err, r->path ? EPERM : ENOMEM,
				  "%s: not an absolute path without symbolic links: not replaced",
				  path);
	if (!r->path)
		return mp_err_set(err, errno == EPERM ? EACCES : errno, "%s: %s", path,
				  strerror(errno));
	slash = strrchr(r->path, '/');
	r->base = slash + 1;
	if (!*r->base) /* the root directory */
		return mp_err_set(err, EISDIR, "%s: %s", path, strerror(EISDIR));
	*slash = '\0';
	r->dir_fd = no_symlinks
			    ? open_without_symlinks(*r->path ? r->path : "/")
			    : open(*r->path ? r->path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*slash = '/';
	if (r->dir_fd < 0 && errno == ELOOP)
		return mp_err_set(err, EPERM,
				  "%s: a directory of this path is a symbolic link: not replaced",
				  r->path);
	return r->dir_fd < 0 ? fail(r, errno, err) : 0;
}

/*
 * Locks the old file's inode. Whoever may read a file can lock the file itself, and could so keep it from being
 * replaced, and a version of Morph in place. So a byte that stands for the inode is locked, in a file that only this
 * user can open; the file itself where there is no place for that. Other users who replace the file are not locked
 * out: check_unchanged() sees what they did. Return: 0, an errno.
 */
static int lock_old(struct me_replace *r)
{
	if (r->lock_fd < 0)
		r->lock_fd = mp_own_file_open("locks", true);
	if (r->lock_fd < 0)
		return flock(r->old_fd, LOCK_EX | LOCK_NB) ? errno : 0;
	return mp_own_lock(r->lock_fd, r->old.st_dev, r->old.st_ino);
}

/* A lock belongs to an inode; the path may name another inode by the time the lock is held. */
static int open_locked(struct me_replace *r, struct mp_err *err)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat now;
		int code;

		/* O_NONBLOCK: opening a FIFO of that name must not block. */
		r->old_fd = openat(r->dir_fd, r->base,
				   O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (r->old_fd < 0 || fstat(r->old_fd, &r->old))
			return fail(r, errno, err);
		if (!S_ISREG(r->old.st_mode))
			return mp_err_set(err, EINVAL, "%s: not a regular file", r->path);
		code = lock_old(r);
		if (code)
			return code == EAGAIN || code == EACCES
				       ? mp_err_set(err, EBUSY,
						    "%s: another morph-optimize is working on this "
						    "file",
						    r->path)
				       : mp_err_set(err, code, "%s: cannot be locked: %s", r->path,
						    strerror(code));
		/* Again: only now can no other morph-optimize change it. */
		if (fstat(r->old_fd, &r->old))
			return fail(r, errno, err);
		if (!fstatat(r->dir_fd, r->base, &now, AT_SYMLINK_NOFOLLOW) &&
		    now.st_dev == r->old.st_dev && now.st_ino == r->old.st_ino)
			return 0;
		close(r->old_fd);
		r->old_fd = -1;
	}
	return mp_err_set(err, EBUSY, "%s: another program keeps replacing this file", r->path);
}

/* Return: does the directory have another name of the old file? *@name: the first one that was found. */
static bool has_sibling(const struct me_replace *r, char name[NAME_MAX + 1])
{
	int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char kept[MP_NEW_NAME_MAX]; /* the worker's own second name */
	struct stat st;
	bool found = false;

	mp_kept_name(r->base, kept);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir))) {
		found = strcmp(entry->d_name, r->base) && strcmp(entry->d_name, kept) &&
			!fstatat(r->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			st.st_dev == r->old.st_dev && st.st_ino == r->old.st_ino;
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	closedir(dir);
	return found;
}

/*
 * Names in one directory are one program under several names, as gunzip and uncompress are: all or
 * none of them should change. Names elsewhere are copies that save space, in perf's cache or in a
 * backup, and keep the old file.
 */
static int check_links(const struct me_replace *r, struct mp_err *err)
{
	char name[NAME_MAX + 1];

	if (r->old.st_nlink < 2 || r->flags & ME_REPLACE_BREAK_LINKS || !has_sibling(r, name))
		return 0;
	return mp_err_set(err, EPERM,
			  "%s: %s is the same file (a hard link), and would keep the old bytes; "
			  "--break-links replaces this name alone",
			  r->path, name);
}

static int check_old(const struct me_replace *r, struct mp_err *err)
{
	struct statx stx;

	if (r->old.st_mode & (S_ISUID | S_ISGID))
		return mp_err_set(err, EPERM,
				  "%s: runs with another user's rights (set-user-ID or "
				  "set-group-ID): not replaced",
				  r->path);
	if (!statx(r->old_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) &&
	    (stx.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)))
		return mp_err_set(err, EPERM, "%s: is marked immutable or append-only (chattr)",
				  r->path);
	return check_links(r, err);
}

static void block_signals(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
}

static int make_new(struct me_replace *r, struct mp_err *err)
{
	/* The name depends on the path alone, so a file that a killed run left is found again. */
	mp_new_name(r->base, r->temporary);
	unlinkat(r->dir_fd, r->temporary, 0);
	if (!access("/proc/self/fd", X_OK)) { /* give_name() needs it */
		r->new_fd = openat(r->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (r->new_fd >= 0)
			return 0;
		if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
			return fail(r, errno, err);
	}
	block_signals();
	r->new_fd = openat(r->dir_fd, r->temporary,
			   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->new_fd < 0)
		return fail(r, errno, err);
	r->has_name = true;
	return 0;
}

int me_replace_begin(struct me_replace *r, const char *path, unsigned int flags, struct mp_err *err)
{
	sigset_t mask;
	int rc;

	*r = (struct me_replace){
		.old_fd = -1, .new_fd = -1, .dir_fd = -1, .lock_fd = -1, .flags = flags};
	/* Blocked, so that a limit on file sizes makes write() fail. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &mask, &r->old_mask);
	rc = open_directory(r, path, err);
	if (!rc)
		rc = open_locked(r, err);
	if (!rc)
		rc = check_old(r, err);
	if (!rc)
		rc = me_attributes_read(r->old_fd, r->path, &r->attributes, err);
	return rc ? rc : make_new(r, err);
}

/*
 * No process can execute the new file while it is open for writing (ETXTBSY), so that
 * descriptor is closed before the file gets its name.
 */
static int reopen_for_reading(struct me_replace *r)
{
	char proc[32];
	struct stat a, b;
	int fd;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", r->new_fd);
	fd = r->has_name ? openat(r->dir_fd, r->temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
			 : open(proc, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &a) || fstat(r->new_fd, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
		close(fd);
		return -EBUSY;
	}
	close(r->new_fd);
	r->new_fd = fd;
	return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int check_unchanged(const struct me_replace *r, struct mp_err *err)
{
	struct stat now;

	if (fstatat(r->dir_fd, r->base, &now, AT_SYMLINK_NOFOLLOW))
		return fail(r, errno, err);
	if (now.st_dev == r->old.st_dev && now.st_ino == r->old.st_ino &&
	    now.st_size == r->old.st_size && same_time(&now.st_mtim, &r->old.st_mtim) &&
	    same_time(&now.st_ctim, &r->old.st_ctim))
		return 0;
	return mp_err_set(err, EBUSY,
			  "%s: another program changed this file meanwhile; it was not replaced",
			  r->path);
}

static int give_name(struct me_replace *r)
{
	char proc[32];

	if (r->has_name)
		return 0;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", r->new_fd);
	if (linkat(AT_FDCWD, proc, r->dir_fd, r->temporary, AT_SYMLINK_FOLLOW))
		return -errno;
	r->has_name = true;
	return 0;
}

int me_replace_commit(struct me_replace *r, const struct timespec *mtime, struct mp_err *err)
{
	int rc = reopen_for_reading(r);

	if (rc)
		return fail(r, -rc, err);
	rc = me_attributes_apply(&r->attributes, r->new_fd, r->path, err);
	if (rc)
		return rc;
	if (mtime && futimens(r->new_fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, *mtime}))
		return fail(r, errno, err);
	if (fsync(r->new_fd))
		return fail(r, errno, err);
	block_signals();
	rc = check_unchanged(r, err);
	if (rc)
		return rc;
	rc = give_name(r);
	if (rc)
		return fail(r, -rc, err);
	if (renameat(r->dir_fd, r->temporary, r->dir_fd, r->base))
		return fail(r, errno, err);
	r->has_name = false;
	/* EINVAL: directories of this file system need no fsync. */
	if (fsync(r->dir_fd) && errno != EINVAL)
		return mp_err_set(err, errno,
				  "%s: replaced, but the directory cannot be synced: %s", r->path,
				  strerror(errno));
	return 0;
}

void me_replace_end(struct me_replace *r)
{
	sigset_t pending;

	/* Discard a SIGXFSZ that write() reported as an error, too. */
	sigemptyset(&pending);
	sigaddset(&pending, SIGXFSZ);
	sigtimedwait(&pending, NULL, &(struct timespec){0});
	if (r->has_name)
		unlinkat(r->dir_fd, r->temporary, 0);
	if (r->new_fd >= 0)
		close(r->new_fd);
	if (r->old_fd >= 0)
		close(r->old_fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	me_attributes_fini(&r->attributes);
	free(r->path);
	r->path = NULL;
	r->old_fd = r->new_fd = r->dir_fd = r->lock_fd = -1;
	r->has_name = false;
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}
