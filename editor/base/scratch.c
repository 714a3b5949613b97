// SPDX-License-Identifier: Apache-2.0
/* scratch - remembers directories, and removes them by system calls alone; see scratch.h. */
#include "editor/base/scratch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/remove_tree.h"

/* A training has one; a comparison of compilations and an audit have one and a slot. */
#define NR_DIRS 4

#define DEPTH 1

/* The process that made them: a child that is forked later ends without removing them. */
static pid_t owner;
static char dirs[NR_DIRS][PATH_MAX];

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
	mp_remove_tree(path, DEPTH);
	for (int i = 0; i < NR_DIRS; i++)
		if (!strcmp(dirs[i], path))
			dirs[i][0] = '\0';
	path[0] = '\0';
}

void me_scratch_remove_all(void)
{
	for (int i = 0; owner == getpid() && i < NR_DIRS; i++)
		if (dirs[i][0])
			mp_remove_tree(dirs[i], DEPTH);
}
