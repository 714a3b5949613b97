// SPDX-License-Identifier: Apache-2.0
/* original - see original.h. */
#include "daemon/fleet/builds/original.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/elf/elf.h"
#include "libprof/note/map.h"

/* An output of Morph may have its original's identity, and its note says what it is. */
static bool is_original(const char *path, const struct mp_id *id)
{
	struct mp_map *map = NULL;
	struct mp_elf *elf;
	bool is;

	if (mp_elf_open(path, MP_ELF_ID, &elf, NULL))
		return false;
	is = mp_id_equal(&elf->id, id) && mp_map_read(elf, &map, NULL);
	mp_map_free(map);
	mp_elf_close(elf);
	return is;
}

/* @path, if it is the module's file. */
static char *take_if(const char *path, const struct mp_id *id)
{
	return is_original(path, id) ? strdup(path) : NULL;
}

/* DIR/.build-id/ab/cdef..., as debuggers and backups have it. */
static char *find_by_name(const char *place, const struct mp_id *id)
{
	char hex[2 * MP_BUILD_ID_MAX + 1], *path, *found;

	if (id->build_id_len < 2)
		return NULL;
	mp_id_format_build_id(id, hex);
	if (asprintf(&path, "%s/.build-id/%.2s/%s", place, hex, hex + 2) < 0)
		return NULL;
	found = take_if(path, id);
	free(path);
	return found;
}

/* All regular files below the directory. Symbolic links inside are not followed. */
static char *find_below(const char *place, const struct mp_id *id)
{
	char *root = strdup(place), *found = NULL;
	FTS *tree = root ? fts_open((char *[]){root, NULL},
				    FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL)
			 : NULL;
	FTSENT *entry;

	while (tree && !found && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_F)
			found = take_if(entry->fts_path, id);
	if (tree)
		fts_close(tree);
	free(root);
	return found;
}

int md_fleet_original_find(const struct mp_id *id, const struct md_places *places, char **path,
			   struct mp_err *err)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];

	*path = NULL;
	for (size_t i = 0; i < places->nr && !*path; i++) {
		*path = find_by_name(places->list[i], id);
		if (!*path)
			*path = find_below(places->list[i], id);
	}
	if (*path)
		return 0;
	mp_id_format_build_id(id, hex);
	return mp_err_set(err, ENOENT, "no original with the build-id %s and this code is here",
			  hex);
}
