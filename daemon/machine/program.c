// SPDX-License-Identifier: Apache-2.0
/* program - looks names up in PATH, in the store and in dpkg's lists; see program.h. */
#include "daemon/machine/program.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/policy/package.h"
#include "libprof/base/grow.h"
#include "libprof/elf/elf.h"
#include "libprof/note/map.h"

#define PACKAGE	 "package:"
#define BUILD_ID "build-id:"
/* Candidates that a message lists. */
#define SHOWN_MAX 8

struct found {
	struct md_program *list;
	size_t nr, nr_more; /* nr_more: beyond MD_PROGRAM_CANDIDATES_MAX */
};

void md_program_fini(struct md_program *program)
{
	free(program->path);
	*program = (struct md_program){0};
}

void md_programs_free(struct md_program *programs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		md_program_fini(&programs[i]);
	free(programs);
}

bool md_program_is_module(const struct md_program *program, const struct mp_module *module)
{
	return mp_id_equal(&program->id, &module->id);
}

int md_program_read(const char *path, struct md_program *out, struct mp_err *err)
{
	struct mp_map *map = NULL;
	struct mp_elf *elf;
	int r;

	*out = (struct md_program){.path = realpath(path, NULL)};
	if (!out->path)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	r = mp_elf_open(out->path, MP_ELF_ID, &elf, err);
	if (r) {
		md_program_fini(out);
		return r;
	}
	out->id = elf->id;
	r = mp_map_read(elf, &map, err);
	if (!r) {
		out->id = map->original;
		out->is_output = true;
	}
	mp_map_free(map);
	mp_elf_close(elf);
	if (!mp_err_is_failure(r))
		return 0;
	md_program_fini(out);
	return r;
}

/* Takes @program, unless it is there already. Return: 0, -ENOMEM. */
static int add(struct found *found, struct md_program *program)
{
	for (size_t i = 0; i < found->nr; i++)
		if (!strcmp(found->list[i].path, program->path)) {
			md_program_fini(program);
			return 0;
		}
	if (found->nr == MD_PROGRAM_CANDIDATES_MAX) {
		found->nr_more++;
		md_program_fini(program);
		return 0;
	}
	if (mp_resize(found->list, found->nr + 1)) {
		md_program_fini(program);
		return -ENOMEM;
	}
	found->list[found->nr++] = *program;
	return 0;
}

static void fini(struct found *found)
{
	md_programs_free(found->list, found->nr);
	*found = (struct found){0};
}

/* ---- commands ------------------------------------------------------------------------------- */

/* As a shell does: the first match counts. */
static int find_command(const struct md_program_search *search, const char *name,
			struct found *found, struct mp_err *err)
{
	const char *dirs = search->commands ? search->commands : getenv("PATH");
	struct md_program program;
	char path[PATH_MAX];
	struct stat st;

	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");
		int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, len ? dirs : ".", name);

		dirs += len + (dirs[len] == ':');
		if (n >= (int)sizeof(path) || access(path, X_OK) || stat(path, &st) ||
		    !S_ISREG(st.st_mode))
			continue;
		n = md_program_read(path, &program, err);
		if (n == -ENOEXEC)
			return mp_err_set(err, ENOEXEC,
					  "%s: %s is no x86-64 program; for a script, name its "
					  "interpreter",
					  name, path);
		return n ? n : add(found, &program);
	}
	return 0;
}

/* ---- the store ------------------------------------------------------------------------------ */

/* The file of @module; or the path where it was, if it is gone or was replaced. */
static int add_module(struct found *found, const struct mp_module *module)
{
	struct md_program program;

	if (md_program_read(module->path, &program, NULL))
		program = (struct md_program){
			.path = strdup(module->path), .id = module->id, .gone = true};
	return program.path ? add(found, &program) : -ENOMEM;
}

static int find_stored(const struct md_program_search *search, const char *name,
		       struct found *found)
{
	int r = 0;

	for (size_t i = 0; i < search->nr_modules && !r; i++) {
		const struct mp_module *module = &search->modules[i];
		const char *slash = strrchr(module->path, '/');

		if (module->kind == MP_MODULE_FILE &&
		    (!strcmp(module->path, name) || (slash && !strcmp(slash + 1, name))))
			r = add_module(found, module);
	}
	/* Prefer files that exist to files that are gone. */
	for (size_t i = 0; i < found->nr; i++) {
		bool other = false;

		for (size_t k = 0; k < found->nr; k++)
			other |= !found->list[k].gone;
		if (!found->list[i].gone || !other)
			continue;
		md_program_fini(&found->list[i]);
		memmove(&found->list[i], &found->list[i + 1],
			(--found->nr - i) * sizeof(*found->list));
		i--;
	}
	return r;
}

static bool is_hex(const char *text)
{
	return strlen(text) >= MD_PROGRAM_HEX_MIN && !text[strspn(text, "0123456789abcdefABCDEF")];
}

static int find_build_id(const struct md_program_search *search, const char *hex,
			 struct found *found)
{
	char id[2 * MP_BUILD_ID_MAX + 1];
	int r = 0;

	for (size_t i = 0; i < search->nr_modules && !r; i++) {
		const struct mp_module *module = &search->modules[i];
		struct md_program program;

		mp_id_format_build_id(&module->id, id);
		if (module->kind != MP_MODULE_FILE || strncasecmp(id, hex, strlen(hex)) != 0)
			continue;
		if (md_program_read(module->path, &program, NULL) ||
		    !md_program_is_module(&program, module)) {
			md_program_fini(&program);
			program = (struct md_program){
				.path = strdup(module->path), .id = module->id, .gone = true};
		}
		r = program.path ? add(found, &program) : -ENOMEM;
	}
	return r;
}

/* ---- packages ------------------------------------------------------------------------------- */

/* Most files of a package are neither programs nor libraries: do not open them. */
static bool may_be_program(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	return slash && !stat(path, &st) && S_ISREG(st.st_mode) &&
	       ((st.st_mode & 0111) || strstr(slash, ".so"));
}

static int find_package(const struct md_program_search *search, const char *package,
			struct found *found)
{
	char *list, *rest, *line;
	int r = md_package_list(search->dpkg_admin, package, &list);

	if (r)
		return r;
	rest = list;
	while (!r && (line = md_package_next(&rest))) {
		struct md_program program;

		if (may_be_program(line) && !md_program_read(line, &program, NULL))
			r = add(found, &program);
	}
	free(list);
	return r;
}

/* ---- all together --------------------------------------------------------------------------- */

static int ambiguous(const char *name, const struct found *found, struct mp_err *err)
{
	char list[2048] = "";
	size_t used = 0, shown = 0;

	for (; shown < found->nr && shown < SHOWN_MAX && used < sizeof(list) - 600; shown++)
		used += snprintf(list + used, sizeof(list) - used, "%s%.500s", shown ? ", " : "",
				 found->list[shown].path);
	if (shown < found->nr + found->nr_more)
		snprintf(list + used, sizeof(list) - used, ", and %zu more",
			 found->nr + found->nr_more - shown);
	return mp_err_set(err, ENOTUNIQ, "%s: may mean any of these, so give a path: %s", name,
			  list);
}

/* Tries each kind of name in turn, until one has a match. */
static int find_any(const struct md_program_search *search, const char *name, struct found *found,
		    struct mp_err *err)
{
	int r;

	if (!strncmp(name, PACKAGE, strlen(PACKAGE)))
		return find_package(search, name + strlen(PACKAGE), found);
	if (!strncmp(name, BUILD_ID, strlen(BUILD_ID)))
		return find_build_id(search, name + strlen(BUILD_ID), found);
	r = find_command(search, name, found, err);
	if (!r && !found->nr)
		r = find_stored(search, name, found);
	if (!r && !found->nr) {
		r = find_package(search, name, found);
		r = r == -ENOENT ? 0 : r;
	}
	if (!r && !found->nr && is_hex(name))
		r = find_build_id(search, name, found);
	return r;
}

static int find_path(const struct md_program_search *search, const char *name,
		     struct md_program *out, struct mp_err *err)
{
	int r = md_program_read(name, out, err);

	if (r == -ENOEXEC)
		return mp_err_set(err, ENOEXEC, "%s: is no x86-64 program or library", name);
	for (size_t i = 0; r == -ENOENT && i < search->nr_modules; i++)
		if (!strcmp(search->modules[i].path, name)) {
			*out = (struct md_program){
				.path = strdup(name), .id = search->modules[i].id, .gone = true};
			return out->path ? 0 : mp_err_set(err, ENOMEM, "out of memory");
		}
	return r;
}

int md_program_find(const struct md_program_search *search, const char *name,
		    struct md_program *out, struct mp_err *err)
{
	struct found found = {0};
	int r;

	*out = (struct md_program){0};
	if (!*name)
		return mp_err_set(err, ENOENT, "an empty name names no program");
	if (strchr(name, '/'))
		return find_path(search, name, out, err);
	r = find_any(search, name, &found, err);
	if (r == -ENOMEM)
		mp_err_set(err, ENOMEM, "out of memory");
	else if (r == -ENOENT || (!r && !found.nr))
		r = mp_err_set(
			err, ENOENT,
			"%s: no command, profiled program, package or build-id has this name",
			name);
	else if (!r && found.nr + found.nr_more > 1)
		r = ambiguous(name, &found, err);
	if (!r) {
		*out = found.list[0];
		found.list[0].path = NULL;
	}
	fini(&found);
	return r;
}
