// SPDX-License-Identifier: Apache-2.0
/* own_output - hashes of a user's outputs, in a file of the user's; see own_output.h. */
#include "libprof/elf/own_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libprof/base/infile.h"
#include "libprof/elf/backup_dir.h"

#define HEX	 (2 * MP_SHA256_BYTES)
#define LINE_MAX (HEX + 1 + HEX + 1 + MP_OWN_KIND_MAX + 1)
#define NEWER	 "outputs"
#define OLDER	 "outputs.old"

int mp_own_hash_file(int fd, uint8_t hash[MP_SHA256_BYTES])
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -EINVAL;
	bytes = mp_infile_map(fd, (size_t)st.st_size);
	if (bytes == MAP_FAILED)
		return -errno;
	mp_sha256(bytes, (size_t)st.st_size, hash);
	munmap(bytes, (size_t)st.st_size);
	return 0;
}

static void put_hex(char *to, const uint8_t hash[MP_SHA256_BYTES])
{
	for (size_t i = 0; i < MP_SHA256_BYTES; i++)
		snprintf(to + 2 * i, 3, "%02x", hash[i]);
}

/* The line of @fd's bytes, as far as the kind. Return: 0, -errno. */
static int make_line(int fd, const struct mp_own_proof *proof, char line[LINE_MAX + 1])
{
	uint8_t hash[MP_SHA256_BYTES];
	int r = mp_own_hash_file(fd, hash);

	if (r)
		return r;
	put_hex(line, hash);
	if (proof) {
		line[HEX] = ' ';
		put_hex(line + HEX + 1, proof->original);
		line[HEX + 1 + HEX] = ' ';
		line[HEX + 1 + HEX + 1] = '\0';
	}
	return 0;
}

/* Makes the directory @path, and those above it. Return: 0, -errno. */
static int make_directories(char *path, mode_t mode)
{
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		if (mkdir(path, mode) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, mode) && errno != EEXIST ? -errno : 0;
}

/* The directory that holds the list. Return: a descriptor, -errno. */
static int open_directory(bool make)
{
	char *path = mp_backup_default_dir(NULL);
	int dir, r;
	struct stat st;

	if (!path)
		return -ENOENT;
	r = make ? make_directories(path, geteuid() ? 0700 : 0755) : 0;
	dir = r ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!r && dir < 0)
		r = -errno;
	free(path);
	if (r)
		return r;
	if (fstat(dir, &st))
		r = -errno;
	else if (st.st_uid != geteuid() || (st.st_mode & 022))
		r = -EPERM;
	if (!r)
		return dir;
	close(dir);
	return r;
}

static int open_file(int dir, const char *name, bool make)
{
	int fd = openat(dir, name,
			O_RDWR | (make ? O_CREAT : 0) | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

int mp_own_file_open(const char *name, bool make)
{
	int dir = open_directory(make), fd;

	if (dir < 0)
		return dir;
	fd = open_file(dir, name, make);
	close(dir);
	return fd;
}

int mp_own_lock(int locks, dev_t dev, ino_t ino)
{
	const uint64_t number[2] = {dev, ino};
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	(void)fcntl(locks, F_OFD_SETLK, &lock); /* of an earlier inode */
	lock.l_type = F_WRLCK;
	lock.l_start = (off_t)(XXH3_64bits(number, sizeof(number)) >> 2);
	lock.l_len = 1;
	return fcntl(locks, F_OFD_SETLK, &lock) ? errno : 0;
}

/* The newer part of the list, locked. @make: if there is none, makes it. Return: a descriptor, -errno. */
static int open_newer(int dir, bool make)
{
	for (;;) {
		struct stat locked, named = {0};
		int fd = open_file(dir, NEWER, make), code = 0;

		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX) || fstat(fd, &locked) ||
		    (fstatat(dir, NEWER, &named, AT_SYMLINK_NOFOLLOW) && errno != ENOENT))
			code = errno;
		else if (locked.st_ino == named.st_ino)
			return fd;
		/* While this program waited for the lock, the part became the older one. */
		close(fd);
		if (code)
			return -code;
	}
}

/*
 * Appends the whole lines of the file @fd to *@lines, with a 0 behind them. Return: 0, -errno. Ownership:
 * free(*@lines), after an error too.
 */
static int read_lines(int fd, char **lines)
{
	size_t have = *lines ? strlen(*lines) : 0;
	struct stat st;
	char *more, *end;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > 2l * MP_OWN_OUTPUTS_MAX * LINE_MAX)
		return -EFBIG;
	more = realloc(*lines, have + (size_t)st.st_size + 1);
	if (!more)
		return -ENOMEM;
	*lines = more;
	more += have;
	*more = '\0';
	n = pread(fd, more, (size_t)st.st_size, 0);
	if (n < 0)
		return -errno;
	end = memrchr(more, '\n', (size_t)n);
	*(end ? end + 1 : more) = '\0';
	return 0;
}

/* The lines of both parts. @newer: a descriptor; below 0: there is none. Return: as read_lines(). */
static int read_list(int dir, int newer, char **lines)
{
	int older = open_file(dir, OLDER, false), r;

	if (older < 0 && older != -ENOENT)
		return older;
	*lines = NULL;
	r = older < 0 ? 0 : read_lines(older, lines);
	if (older >= 0)
		close(older);
	return r || newer < 0 ? r : read_lines(newer, lines);
}

/* Return: what follows @start in the first line that begins with it; NULL: there is none. */
static const char *find_line(const char *lines, const char *start)
{
	size_t len = strlen(start);

	for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
		if ((size_t)(end + 1 - lines) >= len && !memcmp(lines, start, len))
			return lines + len;
	return NULL;
}

static int put(int fd, const char *bytes, size_t size)
{
	ssize_t n = write(fd, bytes, size);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Opens an empty newer part in the place of @newer, which becomes the older one. Return: a descriptor, -errno. */
static int begin_part(int dir, int newer)
{
	int r = renameat(dir, NEWER, dir, OLDER) ? -errno : 0;

	close(newer);
	return r ? r : open_newer(dir, true);
}

/* @whole: bytes of the file's whole lines; a part of a line behind them, which a full disk left, is dropped. */
static int add_line(int fd, size_t whole, const char *line)
{
	struct stat st;
	int r = fstat(fd, &st) ? -errno : 0;

	if (!r && (size_t)st.st_size != whole)
		r = ftruncate(fd, (off_t)whole) ? -errno : 0;
	if (!r)
		r = put(fd, line, strlen(line));
	return r ? r : fsync(fd) ? -errno : 0;
}

static bool is_full(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size >= (off_t)MP_OWN_OUTPUTS_MAX * LINE_MAX;
}

/* Return: 0, -errno; *@newer: as before, or of the next part; below 0: closed */
static int note_line(int dir, int *newer, const char *line)
{
	char *lines = NULL;
	/* A line that only the older part has is added to the newer one, since the older part is removed first. */
	int r = read_lines(*newer, &lines);
	bool there = !r && find_line(lines, line);
	size_t whole = r ? 0 : strlen(lines);

	free(lines);
	if (r || there)
		return r;
	if (is_full(*newer)) {
		*newer = begin_part(dir, *newer);
		/* Another program may have added lines to the new part before this one had its lock. */
		return *newer < 0 ? *newer : note_line(dir, newer, line);
	}
	return add_line(*newer, whole, line);
}

static int note(int fd, const struct mp_own_proof *proof)
{
	char line[LINE_MAX + 1];
	int dir, newer, r = make_line(fd, proof, line);

	if (r)
		return r;
	strcat(line, proof ? proof->kind : "");
	strcat(line, "\n");
	dir = open_directory(true);
	if (dir < 0)
		return dir;
	newer = open_newer(dir, true);
	r = newer < 0 ? newer : note_line(dir, &newer, line);
	if (newer >= 0)
		close(newer);
	close(dir);
	return r;
}

int mp_own_output_note(int fd, const struct mp_own_proof *proof, struct mp_err *err)
{
	int r = note(fd, proof);

	return r < 0 ? mp_err_set(err, -r, "the list of outputs that were written: %s",
				  strerror(-r))
		     : 0;
}

static void take_kind(const char *from, struct mp_own_proof *proof)
{
	size_t len = strcspn(from, "\n");

	if (len >= sizeof(proof->kind))
		return;
	memcpy(proof->kind, from, len);
	proof->kind[len] = '\0';
}

/* The list as it is now; NULL: there is none. Return, ownership: as read_lines(). */
static int read_whole(char **lines)
{
	int dir = open_directory(false), newer, r;

	*lines = NULL;
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	newer = open_newer(dir, false);
	r = newer < 0 && newer != -ENOENT ? newer : read_list(dir, newer, lines);
	if (newer >= 0)
		close(newer);
	close(dir);
	return r;
}

/* Return: 1: this user's programs wrote @fd's bytes; 0: not that anybody knows; -errno. */
static int look_up(int fd, struct mp_own_proof *proof)
{
	char line[LINE_MAX + 1], *lines = NULL;
	const char *kind = NULL;
	int r = make_line(fd, proof, line);

	if (!r)
		r = read_whole(&lines);
	if (!r && lines) {
		kind = proof ? find_line(lines, line) : NULL;
		if (kind)
			take_kind(kind, proof);
		line[HEX] = '\0';
		r = find_line(lines, line) != NULL;
	}
	free(lines);
	return r;
}

int mp_own_output_check(int copy, int fd, const char *name, struct mp_own_proof *proof,
			struct mp_err *err)
{
	struct stat st;
	int r;

	if (proof)
		proof->kind[0] = '\0';
	/* A user's list only spares the user a proof. */
	r = geteuid() && !proof ? 0 : look_up(copy, proof);
	if (geteuid() && r < 0)
		r = 0;
	if (r > 0 && !geteuid())
		return 0;
	if (!r && !geteuid())
		return mp_err_set(
			err, EPERM,
			"%s: was not written by root's own programs on this machine, so root does "
			"not put it in place; let root's morph-optimize write the version",
			name);
	if (r >= 0 && fstat(fd, &st))
		r = -errno;
	if (r < 0)
		return mp_err_set(err, -r, "%s: %s", name, strerror(-r));
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return mp_err_set(err, EPERM,
				  "%s: belongs to another user; write a version of your own", name);
	return 0;
}
