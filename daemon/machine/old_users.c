// SPDX-License-Identifier: Apache-2.0
/* old_users - looks for mappings of deleted files; see old_users.h. */
#include "daemon/machine/old_users.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

#define DELETED " (deleted)"

struct list {
	struct md_old_user *users;
	size_t nr;
};

static int add(struct list *list, size_t path, pid_t pid, const char *name)
{
	for (size_t i = list->nr; i-- > 0 && list->users[i].pid == pid;)
		if (list->users[i].path == path)
			return 0;
	if (mp_resize(list->users, list->nr + 1))
		return -ENOMEM;
	list->users[list->nr] = (struct md_old_user){.path = path, .pid = pid};
	snprintf(list->users[list->nr++].name, sizeof(list->users->name), "%s", name);
	return 0;
}

/* Return: the path of a mapping of a deleted file in this line of maps; NULL: none. Cuts @line. */
static const char *deleted_path(char *line)
{
	size_t len = strcspn(line, "\n"), end = strlen(DELETED);
	char *path = strchr(line, '/');

	line[len] = '\0';
	if (!path || len < end || strcmp(line + len - end, DELETED) != 0)
		return NULL;
	line[len - end] = '\0';
	return path;
}

static void read_name(const char *proc, const char *pid, char *buf, size_t size)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/comm", proc, pid);
	file = fopen(path, "re");
	if (!file || !fgets(buf, (int)size, file))
		snprintf(buf, size, "?");
	buf[strcspn(buf, "\n")] = '\0';
	if (file)
		fclose(file);
}

static int look_at(const char *proc, const char *pid, const char *const *paths, size_t nr_paths,
		   struct list *list)
{
	char file[512], name[17], *line = NULL;
	const char *path;
	size_t size = 0;
	FILE *maps;
	int r = 0;

	snprintf(file, sizeof(file), "%s/%s/maps", proc, pid);
	maps = fopen(file, "re");
	if (!maps)
		return 0;
	while (!r && getline(&line, &size, maps) > 0) {
		path = deleted_path(line);
		for (size_t i = 0; path && i < nr_paths && !r; i++) {
			if (strcmp(path, paths[i]) != 0)
				continue;
			read_name(proc, pid, name, sizeof(name));
			r = add(list, i, atoi(pid), name);
		}
	}
	free(line);
	fclose(maps);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct md_old_user *x = a, *y = b;

	return x->path != y->path ? (x->path > y->path) - (x->path < y->path)
				  : (x->pid > y->pid) - (x->pid < y->pid);
}

int md_old_users_find(const char *proc, const char *const *paths, size_t nr_paths,
		      struct md_old_user **out, size_t *nr)
{
	struct list list = {0};
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	*out = NULL;
	*nr = 0;
	proc = proc ? proc : "/proc";
	dir = nr_paths ? opendir(proc) : NULL;
	if (!dir)
		return nr_paths ? -errno : 0;
	while (!r && (entry = readdir(dir)))
		if (strlen(entry->d_name) < 16 &&
		    !entry->d_name[strspn(entry->d_name, "0123456789")])
			r = look_at(proc, entry->d_name, paths, nr_paths, &list);
	closedir(dir);
	if (r) {
		free(list.users);
		return r;
	}
	if (list.nr)
		qsort(list.users, list.nr, sizeof(*list.users), compare);
	*out = list.users;
	*nr = list.nr;
	return 0;
}
