// SPDX-License-Identifier: Apache-2.0
/* audit_cgroup - finds the place of cgroup v2, and reads cpu.stat. */
#include "editor/audit/server/audit_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds the mount of cgroup v2. On a machine with both versions it is not /sys/fs/cgroup. */
static int cgroup_find_mount(char *to, size_t size)
{
	char line[2 * PATH_MAX], where[PATH_MAX], *type;
	FILE *in = fopen("/proc/self/mountinfo", "re");
	int ret = -ENOENT;

	if (!in)
		return -errno;
	while (ret && fgets(line, sizeof(line), in)) {
		type = strstr(line, " - ");
		if (type && !strncmp(type + 3, "cgroup2 ", 8) &&
		    sscanf(line, "%*s %*s %*s %*s %4095s", where) == 1 && strlen(where) < size) {
			strcpy(to, where);
			ret = 0;
		}
	}
	fclose(in);
	return ret;
}

/* Our own group: the line "0::PATH". */
static int cgroup_find_own(char *to, size_t size)
{
	FILE *in = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	int ret = -ENOENT;

	if (!in)
		return -errno;
	while (ret && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4) && strlen(line + 3) < size) {
			strcpy(to, line + 3);
			ret = 0;
		}
	}
	fclose(in);
	return ret;
}

static int cgroup_move(const char *group)
{
	char path[PATH_MAX + 16];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, "0", 1) == 1 ? 0 : -errno;
	close(fd);
	return ret;
}

int me_cgroup_open(struct me_cgroup *group)
{
	char mount[PATH_MAX], own[PATH_MAX];
	struct me_cpu_time time;
	int ret;

	group->path[0] = 0;
	ret = cgroup_find_mount(mount, sizeof(mount));
	if (!ret)
		ret = cgroup_find_own(own, sizeof(own));
	if (ret)
		return ret;
	if (snprintf(group->outer, sizeof(group->outer), "%s%s", mount,
		     strcmp(own, "/") ? own : "") >= (int)sizeof(group->outer) ||
	    snprintf(group->path, sizeof(group->path), "%s/morph-audit.%d", group->outer,
		     getpid()) >= (int)sizeof(group->path)) {
		group->path[0] = 0;
		return -ENAMETOOLONG;
	}
	if (mkdir(group->path, 0755)) {
		ret = -errno;
		group->path[0] = 0;
		return ret;
	}
	/* Try it: a mount may be read-only for processes, or lack the file of times. */
	ret = me_cgroup_cpu(group, &time);
	if (!ret)
		ret = me_cgroup_enter(group);
	me_cgroup_leave(group);
	if (ret)
		me_cgroup_close(group);
	return ret;
}

int me_cgroup_enter(const struct me_cgroup *group)
{
	return cgroup_move(group->path);
}

void me_cgroup_leave(const struct me_cgroup *group)
{
	cgroup_move(group->outer);
}

int me_cgroup_cpu(const struct me_cgroup *group, struct me_cpu_time *time)
{
	char path[PATH_MAX + 16], line[128];
	uint64_t us;
	int found = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/cpu.stat", group->path);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "usage_usec %" SCNu64, &us) == 1) {
			time->cpu_ns = us * 1000;
			found |= 1;
		} else if (sscanf(line, "user_usec %" SCNu64, &us) == 1) {
			time->user_ns = us * 1000;
			found |= 2;
		}
	}
	fclose(in);
	return found == 3 ? 0 : -ENODATA;
}

void me_cgroup_close(struct me_cgroup *group)
{
	if (group->path[0])
		rmdir(group->path);
	group->path[0] = 0;
}
