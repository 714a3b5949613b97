// SPDX-License-Identifier: Apache-2.0
/* backups - reads DIR/BUILD-ID/XXH3.json; see backups.h. */
#include "daemon/machine/backups.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/machine/program.h"
#include "libprof/base/grow.h"

struct places {
	struct md_backup_place *list;
	size_t nr;
};

void md_backups_free_places(struct md_backup_place *places, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(places[i].path);
	free(places);
}

static int add(struct places *places, const char *path, const char *digest)
{
	struct md_backup_place place = {.path = strdup(path)};

	snprintf(place.digest, sizeof(place.digest), "%.*s", MP_BACKUP_DIGEST_LEN, digest);
	if (!place.path || mp_resize(places->list, places->nr + 1)) {
		free(place.path);
		return -ENOMEM;
	}
	places->list[places->nr++] = place;
	return 0;
}

/* A path that is no UTF-8 (editor/replace/backup_record.c). Return: @bytes; NULL: it is none. */
static const char *read_hex(const char *hex, char bytes[PATH_MAX])
{
	size_t len = hex ? strlen(hex) : 0;
	unsigned int byte;

	if (!len || len % 2 || len / 2 >= PATH_MAX || strspn(hex, "0123456789abcdef") != len)
		return NULL;
	for (size_t i = 0; i < len / 2; i++) {
		sscanf(hex + 2 * i, "%2x", &byte);
		bytes[i] = (char)byte;
	}
	bytes[len / 2] = '\0';
	return bytes;
}

static int read_record(const char *path, const char *digest, struct places *places)
{
	json_t *record = json_load_file(path, 0, NULL), *place;
	size_t i;
	int r = record ? 0 : add(places, path, "");

	json_array_foreach(json_object_get(record, "places"), i, place)
	{
		const char *text = json_string_value(json_object_get(place, "path"));
		char bytes[PATH_MAX];

		if (!text)
			text = read_hex(json_string_value(json_object_get(place, "path_hex")),
					bytes);
		if (text && text[0] == '/' && !r)
			r = add(places, text, digest);
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
		r = read_record(path, entry->d_name, places);
	}
	if (folder)
		closedir(folder);
	return r;
}

int md_backups_places(const char *dir, struct md_backup_place **out, size_t *nr, struct mp_err *err)
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
		md_backups_free_places(places.list, places.nr);
		return r;
	}
	*out = places.list;
	*nr = places.nr;
	return 0;
}

/* If it holds another file, an upgrade has replaced the output, or somebody has restored the original. */
static enum md_backup_holds look_at(const struct md_backup_place *place)
{
	struct md_program file;
	bool is_output;
	int r;

	if (!place->digest[0])
		return MD_BACKUP_UNREADABLE;
	r = md_program_read(place->path, &file, NULL);
	is_output = !r && file.is_output;
	md_program_fini(&file);
	if (r == -ENOENT || r == -ENOTDIR)
		return MD_BACKUP_MISSING;
	if (r && r != -ENOEXEC)
		return MD_BACKUP_UNREADABLE;
	return is_output ? MD_BACKUP_OUTPUT : MD_BACKUP_OTHER;
}

static bool is_listed(const struct md_backup_place *list, size_t nr, const char *path)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].path, path))
			return true;
	return false;
}

int md_backups_list(const char *dir, struct md_backup_place **out, size_t *nr, struct mp_err *err)
{
	struct md_backup_place *places;
	size_t nr_places, kept = 0;
	int r = md_backups_places(dir, &places, &nr_places, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	for (size_t i = 0; i < nr_places; i++) {
		struct md_backup_place place = places[i];

		place.holds = is_listed(places, kept, place.path) ? MD_BACKUP_OTHER
								  : look_at(&place);
		if (place.holds != MD_BACKUP_OTHER)
			places[kept++] = place;
		else
			free(place.path);
	}
	*out = places;
	*nr = kept;
	return 0;
}
