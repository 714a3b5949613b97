// SPDX-License-Identifier: Apache-2.0
/* outputs_find - files that may be an output's original; see outputs_find.h. */
#include "daemon/module/outputs_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NR_NEIGHBOURS 12   /* most files beside an output that are tried */
#define NR_ENTRIES    4096 /* most directory entries that are read */
#define NR_BACKUPS    3

struct found {
	int *fds;
	size_t nr, max;
};

/* Opens only regular files, since opening a device or a pipe may have side effects. */
static void try_file(struct found *found, int dir, const char *name)
{
	char path[32];
	struct stat st;
	int at, fd;

	if (found->nr == found->max)
		return;
	at = openat(dir, name, O_PATH | O_CLOEXEC);
	if (at < 0)
		return;
	if (!fstat(at, &st) && S_ISREG(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0)
			found->fds[found->nr++] = fd;
	}
	close(at);
}

static void try_store(struct found *found, struct mp_store *store, const struct mp_id *original)
{
	struct mp_module module = {.path = NULL};

	if (store && !mp_store_find_module(store, original, &module, NULL))
		try_file(found, AT_FDCWD, module.path);
	free(module.path);
}

/* ---- backups ------------------------------------------------------------------------------- */

/* The directory where morph-optimize --in-place keeps originals: root's, or the user's own. */
static void backup_path(bool root, char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	path[0] = '\0';
	if (root)
		snprintf(path, size, "/var/lib/morph-backup");
	else if (state && state[0] == '/')
		snprintf(path, size, "%s/morph/backup", state);
	else if (home && home[0] == '/')
		snprintf(path, size, "%s/.local/state/morph/backup", home);
}

static void try_backups(struct found *found, bool root, const struct mp_id *original)
{
	char path[PATH_MAX], build_id[2 * MP_BUILD_ID_MAX + 32];
	struct dirent *entry;
	size_t had = found->nr;
	DIR *dir;

	backup_path(root, path, sizeof(path) - sizeof(build_id) - 1);
	if (!path[0])
		return;
	mp_id_format_build_id(original, build_id);
	if (!build_id[0])
		snprintf(build_id, sizeof(build_id), "text-%016llx",
			 (unsigned long long)original->text_hash);
	strcat(strcat(path, "/"), build_id);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)) && found->nr < had + NR_BACKUPS)
		if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.'))
			try_file(found, dirfd(dir), entry->d_name);
	closedir(dir);
}

/* ---- neighbours ---------------------------------------------------------------------------- */

struct neighbour {
	size_t alike; /* length of the common prefix of the names; higher for programs */
	char name[NAME_MAX + 1];
};

/* Inserts into @list, which has @nr of NR_NEIGHBOURS entries, most similar first. */
static size_t insert(struct neighbour *list, size_t nr, const char *name, size_t alike)
{
	size_t at = nr;

	while (at && list[at - 1].alike < alike)
		at--;
	if (at == NR_NEIGHBOURS)
		return nr;
	if (nr == NR_NEIGHBOURS)
		nr--;
	memmove(&list[at + 1], &list[at], (nr - at) * sizeof(*list));
	list[at].alike = alike;
	snprintf(list[at].name, sizeof(list[at].name), "%s", name);
	return nr + 1;
}

static size_t length_alike(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* Programs are preferred over data with a more similar name. */
static bool is_program(int dir, const char *name)
{
	struct stat st;

	return strstr(name, ".so") ||
	       (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && (st.st_mode & 0111));
}

static void try_neighbours(struct found *found, const char *path)
{
	struct neighbour list[NR_NEIGHBOURS];
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX], above[NAME_MAX + 4];
	unsigned int seen = 0;
	struct dirent *entry;
	size_t nr = 0, i;
	DIR *dir;

	if (!slash || path[0] != '/' || (size_t)(slash - path) >= sizeof(parent))
		return;
	snprintf(parent, sizeof(parent), "%.*s/", (int)(slash - path), path);
	dir = opendir(parent);
	if (!dir)
		return;
	/* An output in a subdirectory may have the name of its original in the directory above. */
	snprintf(above, sizeof(above), "../%s", slash + 1);
	try_file(found, dirfd(dir), above);
	while ((entry = readdir(dir)) && seen++ < NR_ENTRIES)
		if ((entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) &&
		    strcmp(entry->d_name, slash + 1))
			nr = insert(list, nr, entry->d_name,
				    length_alike(entry->d_name, slash + 1) +
					    (is_program(dirfd(dir), entry->d_name) ? NAME_MAX : 0));
	for (i = 0; i < nr; i++)
		try_file(found, dirfd(dir), list[i].name);
	closedir(dir);
}

size_t md_outputs_find(struct mp_store *store, const struct mp_id *original, const char *path,
		       int *fds, size_t max)
{
	struct found found = {.fds = fds, .max = max};

	try_store(&found, store, original);
	try_backups(&found, true, original);
	try_backups(&found, false, original);
	try_neighbours(&found, path);
	return found.nr;
}
