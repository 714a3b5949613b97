// SPDX-License-Identifier: Apache-2.0
/* own_output - hashes of root's outputs, in a file of root's; see own_output.h. */
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

#include "libprof/base/sha256.h"
#include "libprof/elf/backup_dir.h"

#define LINE (2 * MP_SHA256_BYTES + 1)

/* The line of @fd's bytes. Return: 0, -errno. */
static int make_line(int fd, char line[LINE + 1])
{
	uint8_t hash[MP_SHA256_BYTES];
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -EINVAL;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	mp_sha256(bytes, (size_t)st.st_size, hash);
	munmap(bytes, (size_t)st.st_size);
	for (size_t i = 0; i < sizeof(hash); i++)
		snprintf(line + 2 * i, 3, "%02x", hash[i]);
	strcpy(line + LINE - 1, "\n");
	return 0;
}

/* Opens the file, locked, in a directory that root alone can write to. Return: a descriptor, -errno. */
static int open_list(void)
{
	int dir, fd = -1, code = 0;
	struct stat st;

	if (mkdir(MP_BACKUP_DIR_ROOT, 0755) && errno != EEXIST)
		return -errno;
	dir = open(MP_BACKUP_DIR_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (fstat(dir, &st))
		code = errno;
	else if (st.st_uid || (st.st_mode & 022))
		code = EPERM;
	else
		fd = openat(dir, "written", O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (!code && (fd < 0 || flock(fd, LOCK_EX)))
		code = errno;
	close(dir);
	if (code && fd >= 0)
		close(fd);
	return code ? -code : fd;
}

/* Return: -errno; else *@nr whole lines at *@lines. Ownership: free(*@lines). */
static int read_list(int fd, char **lines, size_t *nr)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > 2l * MP_OWN_OUTPUTS_MAX * LINE)
		return -EFBIG;
	*lines = malloc((size_t)st.st_size + 1);
	if (!*lines)
		return -ENOMEM;
	n = pread(fd, *lines, (size_t)st.st_size, 0);
	if (n < 0) {
		n = -errno;
		free(*lines);
		return (int)n;
	}
	*nr = (size_t)n / LINE;
	return 0;
}

static bool has_line(const char *lines, size_t nr, const char *line)
{
	for (size_t i = 0; i < nr; i++)
		if (!memcmp(lines + i * LINE, line, LINE))
			return true;
	return false;
}

static int put(int fd, const char *bytes, size_t size)
{
	ssize_t n = write(fd, bytes, size);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* The older half makes room. A part of a line, which a full disk left, is dropped. */
static int add_line(int fd, const char *lines, size_t nr, const char *line)
{
	size_t keep = nr < MP_OWN_OUTPUTS_MAX ? nr : MP_OWN_OUTPUTS_MAX / 2;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st))
		return -errno;
	if (keep != nr)
		r = ftruncate(fd, 0) ? -errno : put(fd, lines + (nr - keep) * LINE, keep * LINE);
	else if ((size_t)st.st_size != nr * LINE)
		r = ftruncate(fd, (off_t)(nr * LINE)) ? -errno : 0;
	if (!r)
		r = put(fd, line, LINE);
	return r ? r : fsync(fd) ? -errno : 0;
}

/* Is the line of @fd's bytes there? If not, @add puts it there. Return: 1 it was, 0, -errno. */
static int look_up(int fd, bool add)
{
	char line[LINE + 1], *lines = NULL;
	size_t nr = 0;
	int list, found = 0, r = make_line(fd, line);

	if (r)
		return r;
	list = open_list();
	if (list < 0)
		return list;
	r = read_list(list, &lines, &nr);
	if (!r) {
		found = has_line(lines, nr, line);
		if (!found && add)
			r = add_line(list, lines, nr, line);
		free(lines);
	}
	close(list);
	return r ? r : found;
}

int mp_own_output_note(int fd, struct mp_err *err)
{
	int r = geteuid() ? 0 : look_up(fd, true);

	return r < 0 ? mp_err_set(err, -r, "%s/written: %s", MP_BACKUP_DIR_ROOT, strerror(-r)) : 0;
}

int mp_own_output_check(int copy, int fd, const char *name, struct mp_err *err)
{
	struct stat st;
	int r = geteuid() ? 0 : look_up(copy, false);

	if (r > 0)
		return 0;
	if (!r && !geteuid())
		return mp_err_set(
			err, EPERM,
			"%s: was not written by root's own programs on this machine, so root does "
			"not put it in place; let root's morph-optimize write the version",
			name);
	if (!r && fstat(fd, &st))
		r = -errno;
	if (r)
		return mp_err_set(err, -r, "%s: %s", name, strerror(-r));
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return mp_err_set(err, EPERM,
				  "%s: belongs to another user; write a version of your own", name);
	return 0;
}
