// SPDX-License-Identifier: Apache-2.0
/* modcache_open - opens the file of a module again, for its code; see modcache.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/module/modcache_private.h"
#include "daemon/module/modfind.h"

/* Opens @file if its path still leads to it, unchanged. Return: a descriptor; -1: it does not. */
static int open_unchanged(const struct md_file *file)
{
	int fd;

	if (!md_modfind_is_unchanged(file->path, file->dev, file->ino, file->mtime_ns,
				     file->ctime_ns))
		return -1;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (!md_modfind_is_open(fd, file->dev, file->ino, file->mtime_ns, file->ctime_ns)) {
		close(fd);
		return -1;
	}
	return fd;
}

int md_modcache_open_module(const struct md_modcache *mc, uint32_t module,
			    const struct md_file **out)
{
	for (uint32_t i = 1; i < mc->files_end; i++) {
		const struct md_file *file = mc->files[i];
		int fd;

		/* Files of a recording have no key of this machine. */
		if (!file || file->module != module || !file->ino || !file->path)
			continue;
		fd = open_unchanged(file);
		if (fd >= 0) {
			*out = file;
			return fd;
		}
	}
	return -ENOENT;
}
