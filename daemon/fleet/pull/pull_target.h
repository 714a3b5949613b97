// SPDX-License-Identifier: Apache-2.0
/*
 * pull_target - the database that gets pulled profiles: an existing one, or a file that appears
 * complete or not at all. Called by pull_command.
 */
#ifndef MD_FLEET_PULL_TARGET_H
#define MD_FLEET_PULL_TARGET_H

#include "libprof/store/store.h"

struct md_pull_target {
	struct mp_store *store;
	char path[4096];
	char temporary[4096]; /* ""; or the file that will get @path's name */
};

/*
 * Opens the database @db, or a new file for @output, or the default database if both are NULL. @output
 * may exist if it is a database with nothing but pulled profiles. Return: 0, -EEXIST, -errno.
 */
int md_pull_target_open(struct md_pull_target *target, const char *db, const char *output,
			struct mp_err *err);
/* Closes it. A new file gets its name if @keep, and is removed otherwise. */
int md_pull_target_close(struct md_pull_target *target, bool keep, struct mp_err *err);

#endif
