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
#include "libprof/elf/mappings.h"

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

static void read_name(pid_t pid, char *buf, size_t size)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(buf, (int)size, file))
		snprintf(buf, size, "?");
	buf[strcspn(buf, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Return: true if @map is of a file @path that was deleted. */
static bool was_deleted(const struct mp_mapping *map, const char *path)
{
	size_t len = strlen(path);

	return !strncmp(map->path, path, len) && !strcmp(map->path + len, " (deleted)");
}

static int look_at(pid_t pid, const char *const *paths, size_t nr_paths, struct list *list)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	char name[17];
	int r = 0;

	if (mp_mappings_open(&maps, pid))
		return 0;
	while (!r && mp_mappings_next(&maps, &map) > 0)
		for (size_t i = 0; i < nr_paths && !r; i++) {
			if (!was_deleted(&map, paths[i]))
				continue;
			read_name(pid, name, sizeof(name));
			r = add(list, i, pid, name);
		}
	mp_mappings_close(&maps);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct md_old_user *x = a, *y = b;

	return x->path != y->path ? (x->path > y->path) - (x->path < y->path)
				  : (x->pid > y->pid) - (x->pid < y->pid);
}

int md_old_users_find(const char *const *paths, size_t nr_paths, struct md_old_user **out,
		      size_t *nr)
{
	struct list list = {0};
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	*out = NULL;
	*nr = 0;
	dir = nr_paths ? opendir("/proc") : NULL;
	if (!dir)
		return nr_paths ? -errno : 0;
	while (!r && (entry = readdir(dir)))
		if (strlen(entry->d_name) < 16 &&
		    !entry->d_name[strspn(entry->d_name, "0123456789")])
			r = look_at(atoi(entry->d_name), paths, nr_paths, &list);
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
