// SPDX-License-Identifier: Apache-2.0
/* originals - the places that are searched; see originals.h. */
#include "daemon/code/originals.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/debuginfod.h"
#include "libprof/elf/backup_dir.h"
#include "libprof/note/map.h"

static const char *const trees[] = {"/usr/lib/debug/.build-id", "/usr/lib/.build-id"};
#define NR_TREES (sizeof(trees) / sizeof(trees[0]))

static const char *backup_dir;

void md_originals_set_backup_dir(const char *dir)
{
	backup_dir = dir;
}

const char *md_originals_backup_dir(void)
{
	return backup_dir;
}

static bool is_file(const char *path, const struct mp_id *id)
{
	struct mp_elf *elf;
	struct mp_map *map = NULL;
	bool same;

	if (mp_elf_open(path, MP_ELF_ID, &elf, NULL))
		return false;
	same = mp_id_equal(&elf->id, id);
	/* Refuse an output with this id: its map note shows that it is not the original. */
	if (same && !mp_map_read(elf, &map, NULL))
		same = false;
	mp_map_free(map);
	mp_elf_close(elf);
	return same;
}

/* The default name of an output is its original's with this behind it. */
#define OUTPUT_SUFFIX ".morph"
/* Files that are looked at in an output's directory. */
#define BESIDE_MAX 256

/* Return: the original of the output at @output, in its directory; NULL: not found. Ownership: free(). */
static char *find_beside(const char *output, const struct mp_id *id)
{
	size_t len = strlen(output), end = strlen(OUTPUT_SUFFIX);
	const char *slash = strrchr(output, '/');
	int prefix = slash ? (int)(slash + 1 - output) : 0;
	char *path = NULL, *dir;
	struct mp_id original;
	struct dirent *d;
	DIR *entries;

	if (!md_original_is_of(output, &original) || !mp_id_equal(&original, id))
		return NULL;
	if (len > end && !strcmp(output + len - end, OUTPUT_SUFFIX)) {
		path = strndup(output, len - end);
		if (path && is_file(path, id))
			return path;
		free(path);
		path = NULL;
	}
	if (!prefix || !(dir = strndup(output, (size_t)prefix)))
		return NULL;
	entries = opendir(dir);
	for (int i = 0; entries && !path && i < BESIDE_MAX && (d = readdir(entries)); i++) {
		if (d->d_type != DT_REG || asprintf(&path, "%s%s", dir, d->d_name) < 0) {
			path = NULL;
			continue;
		}
		if (!is_file(path, id)) {
			free(path);
			path = NULL;
		}
	}
	if (entries)
		closedir(entries);
	free(dir);
	return path;
}

static bool has_symtab(const char *path)
{
	struct mp_elf *elf;
	bool has;

	if (mp_elf_open(path, MP_ELF_SYMBOLS, &elf, NULL))
		return false;
	has = elf->has_symtab;
	mp_elf_close(elf);
	return has;
}

/*
 * @dir/BUILD-ID holds originals, named by the digest of their bytes. A file before and after
 * strip has the same identity; prefer the one with a symbol table.
 */
static int find_backup(const char *dir, const struct mp_id *id, char **path)
{
	char folder[MP_BACKUP_FOLDER_MAX], *all, *best = NULL;
	struct dirent *d;
	DIR *entries;
	bool named = false;
	int r = 0;

	if (asprintf(&all, "%s/%s", dir, mp_backup_folder(id, folder)) < 0)
		return -ENOMEM;
	entries = opendir(all);
	if (!entries)
		r = errno == EACCES ? -EACCES : -ENOENT;
	while (!r && !named && (d = readdir(entries))) {
		char *file;

		if (strlen(d->d_name) != MP_BACKUP_DIGEST_LEN)
			continue;
		if (asprintf(&file, "%s/%s", all, d->d_name) < 0) {
			r = -ENOMEM;
			break;
		}
		if (is_file(file, id)) {
			named = has_symtab(file);
			if (named || !best) {
				free(best);
				best = file;
				continue;
			}
		}
		free(file);
	}
	if (entries)
		closedir(entries);
	free(all);
	if (r == -EACCES)
		best = strdup(dir);
	if (r && r != -EACCES) {
		free(best);
		best = NULL;
	}
	*path = best;
	return r ? r : best ? 0 : -ENOENT;
}

/* Searches the user's own directory, then the machine's. */
static int find_any_backup(const struct mp_id *id, char **path)
{
	char *own, *other = NULL;
	int r, s;

	if (backup_dir)
		return find_backup(backup_dir, id, path);
	own = mp_backup_default_dir(NULL);
	r = own ? find_backup(own, id, path) : -ENOENT;
	if (r && (!own || strcmp(own, MP_BACKUP_DIR_ROOT))) {
		s = find_backup(MP_BACKUP_DIR_ROOT, id, &other);
		if (!s || s == -EACCES) {
			if (r == -EACCES)
				free(*path);
			*path = other;
			r = s;
		}
	}
	free(own);
	return r;
}

/* Return: the path TREE/ab/cdef...SUFFIX. */
static char *in_tree(const char *tree, const struct mp_id *id, const char *suffix)
{
	char hex[2 * MP_BUILD_ID_MAX + 1], *path;

	if (id->build_id_len < 2)
		return NULL;
	mp_id_format_build_id(id, hex);
	return asprintf(&path, "%s/%.2s/%s%s", tree, hex, hex + 2, suffix) < 0 ? NULL : path;
}

int md_original_find(const struct mp_id *id, const char *beside, char **path)
{
	char *found = NULL, *closed = NULL;
	int r;

	*path = beside ? find_beside(beside, id) : NULL;
	if (*path)
		return 0;
	r = find_any_backup(id, path);
	if (!r || r == -ENOMEM)
		return r;
	if (r == -EACCES)
		closed = *path;
	for (size_t i = 0; i < NR_TREES && !found; i++) {
		found = in_tree(trees[i], id, "");
		if (found && !is_file(found, id)) {
			free(found);
			found = NULL;
		}
	}
	if (!found)
		found = md_debuginfod_find(id, MD_DEBUGINFOD_EXECUTABLE);
	if (found && !is_file(found, id)) {
		free(found);
		found = NULL;
	}
	*path = found ? found : closed;
	if (found)
		free(closed);
	return found ? 0 : closed ? -EACCES : -ENOENT;
}

/* Ownership: frees @path. */
static struct mp_elf *open_symbols(char *path, const struct mp_id *id)
{
	struct mp_elf *elf = NULL;

	if (path && mp_elf_open(path, MP_ELF_SYMBOLS | MP_ELF_DEBUG, &elf, NULL))
		elf = NULL;
	free(path);
	if (elf && (!elf->has_symtab || elf->id.build_id_len != id->build_id_len ||
		    memcmp(elf->id.build_id, id->build_id, id->build_id_len))) {
		mp_elf_close(elf);
		elf = NULL;
	}
	return elf;
}

struct mp_elf *md_original_symbols(const struct mp_id *id)
{
	struct mp_elf *elf = NULL;

	for (size_t i = 0; i < NR_TREES && !elf; i++)
		elf = open_symbols(in_tree(trees[i], id, ".debug"), id);
	if (!elf && id->build_id_len)
		elf = open_symbols(md_debuginfod_find(id, MD_DEBUGINFOD_DEBUG), id);
	return elf;
}

bool md_original_is_of(const char *path, struct mp_id *original)
{
	struct mp_map *map = NULL;
	struct mp_elf *elf;
	int r;

	if (mp_elf_open(path, MP_ELF_ID, &elf, NULL))
		return false;
	r = mp_map_read(elf, &map, NULL);
	if (!r)
		*original = map->original;
	mp_map_free(map);
	mp_elf_close(elf);
	return !r;
}
