// SPDX-License-Identifier: Apache-2.0
/* remove_tree - goes by descriptors from directory to directory; see remove_tree.h. */
#include "libprof/base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Another user may add entries to directories that are not taken yet as fast as those of others are removed. */
#define MAX_ENTRIES 1000000

/*
 * Nobody else may add entries to the directory from now on, so that emptying it ends. Only root can take a directory from its
 * owner, and only from another user has root to take it.
 * Return: false: the directory is of another file system, such as one of the user's, or of a user from whom it cannot be taken.
 */
static bool take(int fd, dev_t dev)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_dev != dev)
		return false;
	return st.st_uid == geteuid() || (!fchown(fd, geteuid(), (gid_t)-1) && !fchmod(fd, 0700));
}

static void empty(int fd, dev_t dev, int depth, long *left)
{
	union {
		char bytes[4096];
		struct dirent64 aligned;
	} buf;
	ssize_t got;

	while (*left > 0 && (got = getdents64(fd, &buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got && (*left)-- > 0;) {
			const struct dirent64 *entry = (const void *)(buf.bytes + at);
			int inner;

			at += entry->d_reclen;
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			    !unlinkat(fd, entry->d_name, 0) || depth <= 0)
				continue;
			inner = openat(fd, entry->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (inner < 0)
				continue;
			if (take(inner, dev))
				empty(inner, dev, depth - 1, left);
			close(inner);
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
		}
}

void mp_remove_some(const char *path, int depth, long nr_entries)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0) {
		if (!fstat(fd, &st) && take(fd, st.st_dev))
			empty(fd, st.st_dev, depth, &nr_entries);
		close(fd);
	}
	rmdir(path);
}

void mp_remove_tree(const char *path, int depth)
{
	mp_remove_some(path, depth, MAX_ENTRIES);
}
