// SPDX-License-Identifier: Apache-2.0
/* package - starts dpkg-query and reads what it prints; see package.h. */
#include "daemon/policy/package.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/child.h"

#define DPKG_QUERY "/usr/bin/dpkg-query"
/* More text than this is no list of a package. */
#define LIST_MAX (64u << 20)

/* Accepts only names that dpkg accepts. So no name can be an option or a path. */
static bool is_name(const char *package)
{
	return package[0] && strspn(package, "+.-:") == 0 &&
	       !package[strspn(package, "abcdefghijklmnopqrstuvwxyz0123456789+.-:")];
}

static int start(const char *admin_dir, const char *package, int out, pid_t *pid)
{
	static char *const environment[] = {"LC_ALL=C", "PATH=/usr/bin:/bin", NULL};
	char dir[PATH_MAX + 16], name[NAME_MAX + 1];
	char *argv[] = {"dpkg-query", "--listfiles", name, admin_dir ? dir : NULL, NULL};
	posix_spawn_file_actions_t actions;
	int r;

	snprintf(dir, sizeof(dir), "--admindir=%s", admin_dir ? admin_dir : "");
	snprintf(name, sizeof(name), "%s", package);
	if (admin_dir) {
		argv[1] = dir;
		argv[2] = "--listfiles";
		argv[3] = name;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (!r)
		r = posix_spawn(pid, DPKG_QUERY, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int read_all(int fd, char **out)
{
	size_t size = 0, room = 0;
	ssize_t got;

	*out = NULL;
	for (;;) {
		if (size + 1 >= room) {
			char *more = realloc(*out, room = 2 * room + 65536);

			if (!more)
				return -ENOMEM;
			*out = more;
		}
		got = read(fd, *out + size, room - size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		size += (size_t)got;
		if (size > LIST_MAX)
			return -EFBIG;
	}
	(*out)[size] = '\0';
	return 0;
}

int md_package_list(const char *admin_dir, const char *package, char **out)
{
	int pipes[2], status, r;
	pid_t pid;

	*out = NULL;
	if (!is_name(package))
		return -ENOENT;
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	r = start(admin_dir, package, pipes[1], &pid);
	close(pipes[1]);
	if (!r) {
		r = read_all(pipes[0], out);
		/* dpkg-query ends when nobody reads any more. */
		close(pipes[0]);
		mp_child_wait(pid, &status);
		/* Status 1 says that there is no such package, all else that it is not known. */
		if (!r && (!WIFEXITED(status) || WEXITSTATUS(status)))
			r = WIFEXITED(status) && WEXITSTATUS(status) == 1 ? -ENOENT : -EIO;
	} else {
		close(pipes[0]);
	}
	if (r) {
		free(*out);
		*out = NULL;
	}
	return r;
}

char *md_package_next(char **rest)
{
	char *line = strsep(rest, "\n");

	return line && *line ? line : NULL;
}
