// SPDX-License-Identifier: Apache-2.0
/* scratch - remembers directories, and removes them by system calls alone; see scratch.h. */
#include "editor/base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A training has one; a comparison of compilations and an audit have one and a slot. */
#define NR_DIRS 4

/* The process that made them: a child that is forked later ends without removing them. */
static pid_t owner;
static char dirs[NR_DIRS][PATH_MAX];

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

static void remove_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0) {
		empty(fd, 1);
		close(fd);
	}
	rmdir(path);
}

int me_scratch_make(char *template, struct mp_err *err)
{
	if (!mkdtemp(template)) {
		int rc = mp_err_set(err, errno, "%s: %s", template, strerror(errno));

		template[0] = '\0';
		return rc;
	}
	if (owner != getpid())
		memset(dirs, 0, sizeof(dirs));
	owner = getpid();
	/* If there is no room, only a signal leaves the directory behind. */
	for (int i = 0; i < NR_DIRS; i++)
		if (!dirs[i][0]) {
			strncpy(dirs[i], template, sizeof(dirs[i]) - 1);
			break;
		}
	return 0;
}

void me_scratch_remove(char *path)
{
	if (!path[0])
		return;
	remove_tree(path);
	for (int i = 0; i < NR_DIRS; i++)
		if (!strcmp(dirs[i], path))
			dirs[i][0] = '\0';
	path[0] = '\0';
}

void me_scratch_remove_all(void)
{
	for (int i = 0; owner == getpid() && i < NR_DIRS; i++)
		if (dirs[i][0])
			remove_tree(dirs[i]);
}
