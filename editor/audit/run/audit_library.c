// SPDX-License-Identifier: Apache-2.0
/* audit_library - watches the library's file with inotify; sets LD_LIBRARY_PATH. */
#include "editor/audit/run/audit_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static const char variable[] = "LD_LIBRARY_PATH=";

int me_library_watch(const char *path, struct mp_err *err)
{
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), ret;

	if (watch < 0)
		return mp_err_set(err, errno, "inotify: %s", strerror(errno));
	if (inotify_add_watch(watch, path, IN_OPEN) >= 0)
		return watch;
	ret = mp_err_set(err, errno, "inotify: %s: %s", path, strerror(errno));
	close(watch);
	return ret;
}

bool me_library_opened(int watch)
{
	_Alignas(struct inotify_event) char events[4096];

	/* IN_OPEN is the only event that is asked for, and nothing else can come first. */
	return read(watch, events, sizeof(events)) > 0;
}

char **me_library_environment(char *const *envp, const char *dir)
{
	size_t nr = 0, used = 1;
	const char *old = NULL;
	char **all;

	while (envp[nr])
		nr++;
	all = calloc(nr + 2, sizeof(*all));
	if (!all)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		if (strncmp(envp[i], variable, sizeof(variable) - 1))
			all[used++] = envp[i];
		else
			old = envp[i] + sizeof(variable) - 1;
	}
	if (asprintf(&all[0], "%s%s%s%s", variable, dir, old && *old ? ":" : "", old ? old : "") <
	    0) {
		free(all);
		return NULL;
	}
	return all;
}

void me_library_environment_free(char **envp)
{
	if (envp)
		free(envp[0]);
	free(envp);
}
