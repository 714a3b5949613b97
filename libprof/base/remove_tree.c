// SPDX-License-Identifier: Apache-2.0
/* remove_tree - goes by descriptors from directory to directory; see remove_tree.h. */
#include "libprof/base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void empty(int fd, int depth)
{
	union {
		char bytes[4096];
		struct dirent64 aligned;
	} buf;
	ssize_t got;

	while ((got = getdents64(fd, &buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
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
			empty(inner, depth - 1);
			close(inner);
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
		}
}

void mp_remove_tree(const char *path, int depth)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0) {
		empty(fd, depth);
		close(fd);
	}
	rmdir(path);
}
