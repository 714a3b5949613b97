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

/* A file that is not what is looked for is left out; a failure of the machine is none. */
static int or_failure(int r)
{
	return !r || mp_err_is_failure(r) ? r : -ENOENT;
}

/* Return: 0; -ENOENT: it is another file, or none; -errno: a failure of the machine. */
static int is_file(const char *path, const struct mp_id *id)
{
	struct mp_elf *elf;
	struct mp_map *map = NULL;
	int r = mp_elf_open(path, MP_ELF_ID, &elf, NULL);

	if (r)
		return or_failure(r);
	r = mp_id_equal(&elf->id, id) ? mp_map_read(elf, &map, NULL) : -ESTALE;
	/* Refuse an output with this id: its map note shows that it is not the original. */
	r = !r ? -ENOENT : mp_err_is_failure(r) ? r : r == -ESTALE ? -ENOENT : 0;
	mp_map_free(map);
	mp_elf_close(elf);
	return r;
}

/* The default name of an output is its original's with this behind it. */
#define OUTPUT_SUFFIX ".morph"
/* Files that are looked at in an output's directory. */
#define BESIDE_MAX 256

/* Takes @found, NULL without memory, if it is the file. Return: as is_file(). Ownership: free(*@path). */
static int take(char *found, const struct mp_id *id, char **path)
{
	int r = found ? is_file(found, id) : -ENOMEM;

	if (r)
		free(found);
	else
		*path = found;
	return r;
}

/* Finds the original of the output at @output in its directory. Return: as is_file(). */
static int find_beside(const char *output, const struct mp_id *id, char **path)
{
	size_t len = strlen(output), end = strlen(OUTPUT_SUFFIX);
	const char *slash = strrchr(output, '/');
	int prefix = slash ? (int)(slash + 1 - output) : 0;
	struct mp_id original;
	struct dirent *d;
	char *found;
	DIR *entries;
	int r = or_failure(md_original_id(output, &original, NULL));

	if (r || !mp_id_equal(&original, id))
		return r ? r : -ENOENT;
	if (len > end && !strcmp(output + len - end, OUTPUT_SUFFIX))
		r = take(strndup(output, len - end), id, path);
	else
		r = -ENOENT;
	if (r != -ENOENT || !prefix)
		return r;
	found = strndup(output, (size_t)prefix);
	entries = found ? opendir(found) : NULL;
	if (!entries)
		r = found ? or_failure(-errno) : -ENOMEM;
	free(found);
	for (int i = 0; entries && r == -ENOENT && i < BESIDE_MAX && (d = readdir(entries)); i++)
		if (d->d_type == DT_REG)
			r = take(asprintf(&found, "%.*s%s", prefix, output, d->d_name) < 0 ? NULL
											   : found,
				 id, path);
	if (entries)
		closedir(entries);
	return r;
}

static int has_symtab(const char *path, bool *has)
{
	struct mp_elf *elf;
	int r = mp_elf_open(path, MP_ELF_SYMBOLS, &elf, NULL);

	*has = !r && elf->has_symtab;
	if (!r)
		mp_elf_close(elf);
	return mp_err_is_failure(r) ? r : 0;
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
		r = errno == EACCES ? -EACCES : or_failure(-errno);
	while (!r && !named && (d = readdir(entries))) {
		char *file;

		if (strlen(d->d_name) != MP_BACKUP_DIGEST_LEN)
			continue;
		if (asprintf(&file, "%s/%s", all, d->d_name) < 0) {
			r = -ENOMEM;
			break;
		}
		r = is_file(file, id);
		if (!r)
			r = has_symtab(file, &named);
		if (!r && (named || !best)) {
			free(best);
			best = file;
			continue;
		}
		free(file);
		r = r == -ENOENT ? 0 : r;
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
	if (r && !mp_err_is_failure(r) && (!own || strcmp(own, MP_BACKUP_DIR_ROOT))) {
		s = find_backup(MP_BACKUP_DIR_ROOT, id, &other);
		if (s != -ENOENT) {
			if (r == -EACCES)
				free(*path);
			*path = other;
			r = s;
		}
	}
	free(own);
	return r;
}

/* The path TREE/ab/cdef...SUFFIX. Return: 0; -ENOENT: the build-id is too short; -ENOMEM. */
static int in_tree(const char *tree, const struct mp_id *id, const char *suffix, char **path)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];

	if (id->build_id_len < 2)
		return -ENOENT;
	mp_id_format_build_id(id, hex);
	return asprintf(path, "%s/%.2s/%s%s", tree, hex, hex + 2, suffix) < 0 ? -ENOMEM : 0;
}

static int find_elsewhere(const struct mp_id *id, char **path)
{
	int r = -ENOENT;
	char *found;

	for (size_t i = 0; i < NR_TREES && r == -ENOENT; i++) {
		r = in_tree(trees[i], id, "", &found);
		if (!r)
			r = take(found, id, path);
	}
	if (r == -ENOENT && (found = md_debuginfod_find(id, MD_DEBUGINFOD_EXECUTABLE)))
		r = take(found, id, path);
	return r;
}

int md_original_find(const struct mp_id *id, const char *beside, char **path)
{
	char *closed = NULL;
	int r = -ENOENT;

	*path = NULL;
	if (beside)
		r = find_beside(beside, id, path);
	if (r == -ENOENT)
		r = find_any_backup(id, path);
	if (r != -ENOENT && r != -EACCES)
		return r;
	if (r == -EACCES)
		closed = *path;
	*path = NULL;
	r = find_elsewhere(id, path);
	if (r == -ENOENT && closed) {
		*path = closed;
		return -EACCES;
	}
	free(closed);
	return r;
}

/* Opens the file at @path, if it has a symbol table and @id's build-id. Return: as is_file(). Ownership: frees @path. */
static int open_symbols(char *path, const struct mp_id *id, struct mp_elf **out)
{
	int r = mp_elf_open(path, MP_ELF_SYMBOLS | MP_ELF_DEBUG, out, NULL);

	free(path);
	if (!r && (*out)->has_symtab && (*out)->id.build_id_len == id->build_id_len &&
	    !memcmp((*out)->id.build_id, id->build_id, id->build_id_len))
		return 0;
	if (!r)
		mp_elf_close(*out);
	*out = NULL;
	return r ? or_failure(r) : -ENOENT;
}

int md_original_symbols(const struct mp_id *id, struct mp_elf **out)
{
	int r = -ENOENT;
	char *path;

	*out = NULL;
	for (size_t i = 0; i < NR_TREES && r == -ENOENT; i++) {
		r = in_tree(trees[i], id, ".debug", &path);
		if (!r)
			r = open_symbols(path, id, out);
	}
	if (r == -ENOENT && id->build_id_len &&
	    (path = md_debuginfod_find(id, MD_DEBUGINFOD_DEBUG)))
		r = open_symbols(path, id, out);
	return r == -ENOENT ? 0 : r;
}

int md_original_id(const char *path, struct mp_id *id, struct mp_err *err)
{
	struct mp_map *map = NULL;
	struct mp_elf *elf;
	int r = mp_elf_open(path, MP_ELF_ID, &elf, err);

	if (r)
		return r;
	r = mp_map_read(elf, &map, err);
	*id = r ? elf->id : map->original;
	mp_map_free(map);
	mp_elf_close(elf);
	return mp_err_is_failure(r) ? r : 0;
}
