// SPDX-License-Identifier: Apache-2.0
/* counters - makes and checks files of counts; see counters.h. */
#include "daemon/live/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libprof/note/counts_file.h"

#define SAFE (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

union header {
	struct mp_counts_file_header fields;
	uint8_t bytes[MP_COUNTS_FILE_HEADER_BYTES];
};

struct maker {
	const char *dir;
	int dir_fd;
	uid_t uid;
	gid_t gid;
	char name[16]; /* of the file */
	uint64_t size; /* of the file */
	union header header;
};

static int refuse(const struct maker *m, const char *why, struct mp_err *err)
{
	return mp_err_set(err, EPERM, "%s/%s: %s, so nothing is counted there", m->dir, m->name,
			  why);
}

static int failed(const struct maker *m, int code, struct mp_err *err)
{
	return mp_err_set(err, code, "%s/%s: %s", m->dir, m->name, strerror(code));
}

/* ---- a file that is there ----------------------------------------------------------------------- */

/* Only the user may open the file: whoever can open it can shorten it, and that ends the processes that count. */
static int check(const struct maker *m, int fd, struct md_counters_file *out, struct mp_err *err)
{
	union header header;
	struct stat st;

	if (fstat(fd, &st))
		return failed(m, errno, err);
	if (!S_ISREG(st.st_mode))
		return refuse(m, "is no regular file", err);
	if (st.st_uid != m->uid || (st.st_mode & 077))
		return refuse(m, "belongs to another user, or others may use it", err);
	if (st.st_nlink != 1)
		return refuse(m, "has another name", err);
	if ((uint64_t)st.st_size != m->size ||
	    pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(&header, &m->header, sizeof(header)) != 0)
		return refuse(m, "holds no counts of this version", err);
	/* Counting without space on the disk ends a program. */
	if (fallocate(fd, 0, 0, st.st_size))
		return failed(m, errno, err);
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	return 0;
}

/* ---- a new one ---------------------------------------------------------------------------------- */

static int fill(const struct maker *m, int fd)
{
	if (fallocate(fd, 0, 0, (off_t)m->size))
		return -errno;
	if (pwrite(fd, &m->header, sizeof(m->header), 0) != sizeof(m->header))
		return -EIO;
	/* Last: from now on its user may write it, too. */
	return geteuid() != m->uid && fchown(fd, m->uid, m->gid) ? -errno : 0;
}

/* The file gets its name once it is complete. Return: 0: also if somebody else was faster; -errno. */
static int make(const struct maker *m)
{
	char temporary[64];
	int fd, r;

	snprintf(temporary, sizeof(temporary), ".%s.%d", m->name, (int)getpid());
	fd = openat(m->dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | SAFE, 0600);
	if (fd < 0)
		return -errno;
	r = fill(m, fd);
	close(fd);
	if (!r && !renameat2(m->dir_fd, temporary, m->dir_fd, m->name, RENAME_NOREPLACE))
		return 0;
	if (!r && errno != EEXIST)
		r = -errno;
	unlinkat(m->dir_fd, temporary, 0);
	return r;
}

static int open_or_make(const struct maker *m, struct md_counters_file *out, struct mp_err *err)
{
	int fd = openat(m->dir_fd, m->name, O_RDWR | SAFE), r;

	if (fd < 0 && errno == ENOENT) {
		r = make(m);
		if (r)
			return failed(m, -r, err);
		fd = openat(m->dir_fd, m->name, O_RDWR | SAFE);
	}
	if (fd < 0)
		return errno == ELOOP ? refuse(m, "is a symbolic link", err)
				      : failed(m, errno, err);
	r = check(m, fd, out, err);
	close(fd);
	return r;
}

/* ---- the directory ------------------------------------------------------------------------------ */

/* In a directory of others, or without the sticky bit, one user could rename another's file to this name. */
static int open_dir(const char *dir, struct mp_err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		int code = errno;

		if (fd >= 0)
			close(fd);
		return mp_err_set(err, code, "%s: %s", dir, strerror(code));
	}
	if ((st.st_uid == geteuid() || !st.st_uid) &&
	    (!(st.st_mode & 022) || (st.st_mode & S_ISVTX)))
		return fd;
	close(fd);
	return mp_err_set(err, EPERM,
			  "%s: belongs to another user, or others may exchange its files", dir);
}

/* The effective user and group of the process. */
static bool find_user(pid_t pid, uid_t *uid, gid_t *gid)
{
	char uids[128], gids[128];

	return md_process_status(pid, "Uid", uids, sizeof(uids)) &&
	       md_process_status(pid, "Gid", gids, sizeof(gids)) &&
	       sscanf(uids, "%*u %u", uid) == 1 && sscanf(gids, "%*u %u", gid) == 1;
}

int md_counters_file_make(const char *dir, const struct md_process *process, uint64_t size,
			  uint64_t table_hash, struct md_counters_file *out, struct mp_err *err)
{
	struct maker m = {.size = MP_COUNTS_FILE_HEADER_BYTES + size,
			  .header.fields = {.version = MP_COUNTS_FILE_VERSION,
					    .header_bytes = MP_COUNTS_FILE_HEADER_BYTES,
					    .counters_bytes = size,
					    .table_hash = table_hash}};
	char *full;
	int r;

	memcpy(m.header.fields.magic, MP_COUNTS_FILE_MAGIC, sizeof(m.header.fields.magic));
	if (!find_user(process->pid, &m.uid, &m.gid))
		return mp_err_set(err, ESRCH, "process %d: has ended", (int)process->pid);
	snprintf(m.name, sizeof(m.name), "%u", m.uid);
	full = realpath(dir, NULL);
	if (!full)
		return mp_err_set(err, errno, "%s: %s", dir, strerror(errno));
	m.dir = full;
	if (snprintf(out->path, sizeof(out->path), "%s/%s", full, m.name) >= (int)sizeof(out->path))
		r = mp_err_set(err, ENAMETOOLONG, "%s: too long", dir);
	else
		r = m.dir_fd = open_dir(full, err);
	if (r >= 0) {
		r = open_or_make(&m, out, err);
		close(m.dir_fd);
	}
	free(full);
	return r;
}

bool md_counters_are_in(const char *dir, const struct md_mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	bool is;

	is = fd >= 0 && name && !fstatat(fd, name + 1, &st, AT_SYMLINK_NOFOLLOW) &&
	     S_ISREG(st.st_mode) && st.st_ino == mapping->ino &&
	     makedev(mapping->dev_major, mapping->dev_minor) == st.st_dev;
	if (fd >= 0)
		close(fd);
	return is;
}
