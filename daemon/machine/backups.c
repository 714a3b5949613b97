// SPDX-License-Identifier: Apache-2.0
/* backups - reads DIR/BUILD-ID/XXH3.json; see backups.h. */
#include "daemon/machine/backups.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/machine/program.h"
#include "libprof/base/grow.h"
#include "libprof/elf/backup_dir.h"

struct places {
	char **list;
	size_t nr;
};

void md_backups_free(char **places, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(places[i]);
	free(places);
}

static int add(struct places *places, const char *path)
{
	struct md_program file;

	for (size_t i = 0; i < places->nr; i++)
		if (!strcmp(places->list[i], path))
			return 0;
	/* An upgrade has replaced the output, or somebody has restored the original. */
	if (path[0] != '/' || md_program_read(path, &file, NULL))
		return 0;
	if (!file.is_output) {
		md_program_fini(&file);
		return 0;
	}
	md_program_fini(&file);
	if (mp_resize(places->list, places->nr + 1))
		return -ENOMEM;
	places->list[places->nr] = strdup(path);
	return places->list[places->nr] ? (places->nr++, 0) : -ENOMEM;
}

static int read_record(const char *path, struct places *places)
{
	json_t *record = json_load_file(path, 0, NULL), *place;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(record, "places"), i, place)
	{
		const char *text = json_string_value(json_object_get(place, "path"));

		if (text && !r)
			r = add(places, text);
	}
	json_decref(record);
	return r;
}

static int read_folder(const char *dir, const char *name, struct places *places)
{
	char path[8192];
	struct dirent *entry;
	DIR *folder;
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	folder = opendir(path);
	while (folder && !r && (entry = readdir(folder))) {
		size_t len = strlen(entry->d_name);

		if (len < 5 || strcmp(entry->d_name + len - 5, ".json") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", dir, name, entry->d_name);
		r = read_record(path, places);
	}
	if (folder)
		closedir(folder);
	return r;
}

int md_backups_list(const char *dir, char ***out, size_t *nr, struct mp_err *err)
{
	char *own = dir ? strdup(dir) : mp_backup_default_dir(err);
	struct places places = {0};
	struct dirent *entry;
	DIR *all;
	int r = 0;

	*out = NULL;
	*nr = 0;
	if (!own)
		return dir ? mp_err_set(err, ENOMEM, "out of memory") : -EIO;
	all = opendir(own);
	if (!all && errno != ENOENT)
		r = mp_err_set(err, errno, "%s: %s", own, strerror(errno));
	while (all && !r && (entry = readdir(all)))
		if (entry->d_name[0] != '.' && read_folder(own, entry->d_name, &places))
			r = mp_err_set(err, ENOMEM, "out of memory");
	if (all)
		closedir(all);
	free(own);
	if (r) {
		md_backups_free(places.list, places.nr);
		return r;
	}
	*out = places.list;
	*nr = places.nr;
	return 0;
}
