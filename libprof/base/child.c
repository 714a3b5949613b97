// SPDX-License-Identifier: Apache-2.0
/* child - finds programs, becomes one, waits for one; see child.h. */
#include "libprof/base/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Is @name a program in the directory of @len bytes at @dir? */
static bool is_in(const char *dir, int len, const char *below, const char *name, char *out)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%.*s/%s%s", len, dir, below, name) <
		       (int)sizeof(path) &&
	       is_program(path) && realpath(path, out);
}

int mp_child_find(const char *name, char *out, struct mp_err *err)
{
	static const char *const places[] = {"", "../sbin/", "../bin/", "../../bin/",
					     "../../sbin/"};
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++)
		if (is_in(self, (int)(slash - self), places[i], name, out))
			return 0;
	return mp_err_set(err, ENOENT, "%s: is not installed beside this program", name);
}

bool mp_child_find_in_path(const char *name, char *out)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return is_program(name) && realpath(name, out);
	for (; path && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		if (is_in(path, (int)(end - path), "", name, out))
			return true;
	}
	return false;
}

void mp_child_exec(char *const *argv)
{
	char program[PATH_MAX];

	if (!mp_child_find(argv[0], program, NULL))
		execv(program, argv);
	execvp(argv[0], argv);
}

int mp_child_wait(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}
