// SPDX-License-Identifier: Apache-2.0
/* take_back - takes versions out of running processes; see take_back.h. */
#include "daemon/morph/take_back.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "daemon/live/process.h"
#include "daemon/live/targets.h"
#include "daemon/live/version.h"
#include "daemon/morph/run_tool.h"

/* Has the process such a version? Return: 1; 0: no, or it has ended, or it is another user's; -errno. */
static int has_version(pid_t pid, const char *file, struct mp_err *err)
{
	struct md_versions versions = {0};
	struct md_process process = {0};
	bool has = false;
	int r = md_process_open(pid, &process, err);

	if (!r)
		r = md_versions_find(&process, true, &versions, err);
	for (size_t i = 0; !r && i < versions.nr; i++)
		has |= md_version_is_of(&versions.list[i], file);
	md_versions_close(&versions);
	md_process_close(&process);
	return r == -ESRCH || r == -EACCES || r == -EPERM ? 0 : r ? r : has;
}

int md_take_back(const char *file, size_t *nr, struct mp_err *err)
{
	struct md_targets all;
	char number[16];
	char *argv[] = {(char *)"morph",
			(char *)"live",
			(char *)"--json",
			(char *)"undo",
			number,
			(char *)file,
			NULL};
	int status = 0, failed = 0, r = md_targets_find(NULL, NULL, &all, err);

	*nr = 0;
	for (size_t i = 0; !r && i < all.nr; i++) {
		int one = has_version(all.list[i].pid, file, err);

		if (one == 1) {
			snprintf(number, sizeof(number), "%d", (int)all.list[i].pid);
			one = md_run_tool(argv, NULL, err);
			*nr += !one;
			/* A process that has ended meanwhile has no version. */
			if (one > 0 && !md_target_has_ended(&all.list[i]))
				status = status ? status : one;
			one = one < 0 ? one : 0;
		}
		/* Any user's process may be one that cannot be looked at. The others are not left for that. */
		failed = failed ? failed : one;
		r = one == -ENOMEM ? one : 0;
	}
	md_targets_free(&all);
	return r ? r : failed ? failed : status;
}
