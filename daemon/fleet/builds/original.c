// SPDX-License-Identifier: Apache-2.0
/* original - see original.h. */
#include "daemon/fleet/builds/original.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/worker/child.h"
#include "libprof/elf/elf.h"

#define DEBUGINFOD_LIMIT_S 600

static bool is_original(const char *path, const struct mp_id *id)
{
	struct mp_elf *elf;
	bool is;

	if (mp_elf_open(path, MP_ELF_ID, &elf, NULL))
		return false;
	is = md_original_has(elf, id);
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

/* debuginfod-find prints the path of its copy. */
static char *ask_debuginfod(const struct mp_id *id, const struct md_original_search *search)
{
	char hex[2 * MP_BUILD_ID_MAX + 1], out[4200], messages[4200], path[4200] = "";
	char *argv[] = {"/usr/bin/env", "debuginfod-find", "executable", hex, NULL};
	struct md_child child = {.argv = argv,
				 .out = out,
				 .messages = messages,
				 .limit_s = DEBUGINFOD_LIMIT_S,
				 .look = search->look.look,
				 .look_arg = search->look.arg};
	struct md_child_result result;
	FILE *file;

	mp_id_format_build_id(id, hex);
	snprintf(out, sizeof(out), "%s/found", search->dir);
	snprintf(messages, sizeof(messages), "%s/messages", search->dir);
	if (!hex[0] || md_child_run(&child, &result, NULL) || result.end != MD_CHILD_EXITED ||
	    result.status)
		return NULL;
	file = fopen(out, "re");
	if (!file)
		return NULL;
	if (fgets(path, sizeof(path), file))
		path[strcspn(path, "\n")] = '\0';
	fclose(file);
	return path[0] ? take_if(path, id) : NULL;
}

/* Return: 0, -ENOENT, -EAGAIN, -ECANCELED. */
static int take_from_package(const struct mp_id *id, const struct md_original_search *search,
			     char **path, struct mp_err *err)
{
	const struct md_package_search packages = {.packages = &search->places->packages,
						   .name = search->name,
						   .dir = search->dir,
						   .look = search->look,
						   .say = search->say,
						   .say_arg = search->say_arg};
	char *out;
	int r;

	if (asprintf(&out, "%s/original", search->dir) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = md_packages_take(&packages, id, out, err);
	/* The process that found it saw bytes of unknown authors, so its word does not count. */
	if (!r) {
		*path = take_if(out, id);
		r = *path ? 0 : mp_err_set(err, ENOENT, "a package gives another file");
	}
	free(out);
	return r;
}

int md_fleet_original_find(const struct mp_id *id, const struct md_original_search *search,
			   char **path, struct mp_err *err)
{
	const struct md_original_places *p = search->places;
	char hex[2 * MP_BUILD_ID_MAX + 1];
	struct mp_err why = {""};
	int r = 0;

	*path = NULL;
	for (size_t i = 0; i < p->nr && !*path; i++) {
		if (!strcmp(p->places[i], MD_ORIGINAL_DEBUGINFOD)) {
			*path = ask_debuginfod(id, search);
			continue;
		}
		*path = find_by_name(p->places[i], id);
		if (!*path)
			*path = find_below(p->places[i], id);
	}
	if (*path)
		return 0;
	if (p->packages.nr)
		r = take_from_package(id, search, path, &why);
	if (*path)
		return 0;
	mp_id_format_build_id(id, hex);
	return mp_err_set(err, r ? -r : ENOENT,
			  "no original with the build-id %s and this code is here%s%s", hex,
			  why.msg[0] ? ": " : "", why.msg);
}
