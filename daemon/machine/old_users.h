// SPDX-License-Identifier: Apache-2.0
/*
 * old_users - which running processes still use a file that was replaced since. They keep the old
 * code until they are started again. Reads /proc/PID/maps; without privileges, only those of the
 * user's own processes. Called by `morph list`.
 */
#ifndef MD_OLD_USERS_H
#define MD_OLD_USERS_H

#include <stddef.h>
#include <sys/types.h>

struct md_old_user {
	size_t path; /* index in @paths */
	pid_t pid;
	char name[17]; /* of the process, as the kernel has it */
};

/*
 * md_old_users_find - Processes in ascending order for each path. Return: 0, -ENOMEM, -errno of opening /proc.
 * Ownership: free(*@out).
 */
int md_old_users_find(const char *const *paths, size_t nr_paths, struct md_old_user **out,
		      size_t *nr);

#endif
