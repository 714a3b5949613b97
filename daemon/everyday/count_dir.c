// SPDX-License-Identifier: Apache-2.0
/* count_dir - files of counts of several users; see count_dir.h. */
#include "daemon/everyday/count_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/remove_tree.h"
#include "libprof/note/counts_file.h"

/* Anybody may fill the directory with names; more are not looked at. */
#define MAX_NAMES 4096
#define DEPTH	  4 /* of what is removed */

int md_count_dir_make(const char *path, bool keep, struct mp_err *err)
{
	if (keep && !access(path, F_OK))
		return 0;
	md_count_dir_remove(path);
	if (mkdir(path, 0700) || chmod(path, 01777))
		return mp_err_set(err, errno == EEXIST ? ENOTEMPTY : errno, "%s: %s", path,
				  strerror(errno));
	return 0;
}

/* Its users may still be at work in it: another name frees this one at once, whatever can be removed. */
void md_count_dir_remove(const char *path)
{
	char old[PATH_MAX + 8];

	if (access(path, F_OK) ||
	    snprintf(old, sizeof(old), "%s.XXXXXX", path) >= (int)sizeof(old) || !mkdtemp(old))
		return;
	if (!rename(path, old))
		(void)!chmod(old, 0700);
	mp_remove_tree(old, DEPTH);
}

/* A version of a program with threads has a set of counters for each of them. */
static off_t longest_file(uint32_t nr)
{
	off_t set = ((off_t)nr * 8 + 4095) / 4096 * 4096;

	return MP_COUNTS_FILE_HEADER_BYTES + set * MP_COUNTS_FILE_MAX_SETS;
}

/*
 * Does the error only say that the name is no file of counts? A user may have removed it, leased it, or put a link, a socket or a
 * device there.
 */
static bool is_of_user(int code)
{
	return code == ENOENT || code == ELOOP || code == EACCES || code == ENXIO ||
	       code == ENODEV || code == EAGAIN;
}

/* Opens the file of one user, with @nr counters. Return: -ENOENT: it is not one; -errno. */
static int open_user(int dir, const char *name, uint32_t nr)
{
	struct stat st;
	char own[16];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return is_of_user(errno) ? -ENOENT : -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_size <= longest_file(nr)) {
		snprintf(own, sizeof(own), "%u", st.st_uid);
		if (!strcmp(own, name))
			return fd;
	}
	close(fd);
	return -ENOENT;
}

/* Return: as readdir(); NULL and *@code 0: there are no more. */
static struct dirent *next_entry(DIR *d, int *code)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(d);
	*code = entry ? 0 : errno;
	return entry;
}

static void add(uint64_t *to, const uint64_t *from, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (__builtin_add_overflow(to[i], from[i], &to[i]))
			to[i] = UINT64_MAX;
}

int md_count_dir_read(const char *path, uint64_t table_hash, uint64_t *counters, uint32_t nr,
		      struct mp_err *err)
{
	DIR *d = opendir(path);
	int code = d ? 0 : errno;
	uint64_t *one = malloc(((size_t)nr + 1) * sizeof(*one));
	struct dirent *entry;
	unsigned int names = 0;
	int ret = 0;

	/* Without the files, all counts would seem to begin again. */
	if (code && code != ENOENT)
		ret = mp_err_set(err, code, "%s: %s", path, strerror(code));
	memset(counters, 0, nr * sizeof(*counters));
	if (!one)
		ret = mp_err_code(err, ENOMEM);
	while (!ret && d && (entry = next_entry(d, &code)) && names++ < MAX_NAMES) {
		int fd = open_user(dirfd(d), entry->d_name, nr);

		if (fd == -ENOENT)
			continue;
		if (fd < 0) {
			ret = mp_err_set(err, -fd, "%s/%s: %s", path, entry->d_name, strerror(-fd));
			break;
		}
		memset(one, 0, nr * sizeof(*one));
		ret = mp_counts_file_add(entry->d_name, fd, table_hash, one, nr, err);
		if (!ret)
			add(counters, one, nr);
		close(fd);
		/* New, damaged by its user, or made for another program: it counts for nothing. */
		if (ret == -ENODATA || ret == -EBADMSG || ret == -EOVERFLOW)
			ret = 0;
	}
	if (!ret && code && code != ENOENT)
		ret = mp_err_set(err, code, "%s: %s", path, strerror(code));
	if (d)
		closedir(d);
	free(one);
	return ret;
}
