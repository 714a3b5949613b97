// SPDX-License-Identifier: Apache-2.0
/* packages - see packages.h. */
#include "daemon/fleet/packages/packages.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/packages/package_contents.h"
#include "daemon/fleet/packages/package_fetch.h"
#include "daemon/fleet/packages/package_folder.h"
#include "daemon/fleet/packages/package_index.h"
#include "daemon/fleet/whole_file.h"

/* Far larger than any of Debian's. */
#define INDEX_MAX   (UINT64_C(1) << 30)
#define PACKAGE_MAX (UINT64_C(4) << 30)
/* Packages that packages of debug information name. */
#define NAMES_MAX 64

/* An index, in the order in which archives compress it. */
static const char *const suffixes[] = {".xz", ".zst", ".gz", ".bz2", ""};

struct search {
	const struct md_package_search *with;
	const struct mp_id *id;
	const char *out;
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	struct md_package_name names[NAMES_MAX];
	size_t nr_names;
	size_t nr_indexes, nr_folders; /* that could be read */
	bool lacks_answer;	       /* of a server */
	struct mp_err why;	       /* the last thing that went wrong */
};

/* Notes what went wrong with one index or package. The search goes on. */
static void note(struct search *s, int r, const struct mp_err *why)
{
	s->lacks_answer |= r == -EAGAIN;
	s->why = *why;
	s->with->say(s->with->say_arg, why->msg);
}

/* ---- indexes ------------------------------------------------------------------------------- */

/* A name in the cache for what @url names. */
static char *cached_path(const struct search *s, const char *url)
{
	uint8_t hash[MD_SHA256_SIZE];
	char *path;

	if (md_sha256(url, strlen(url), hash))
		return NULL;
	return asprintf(&path, "%s/index-%02x%02x%02x%02x%02x%02x%02x%02x",
			s->with->packages->cache, hash[0], hash[1], hash[2], hash[3], hash[4],
			hash[5], hash[6], hash[7]) < 0
		       ? NULL
		       : path;
}

/* Brings the copy of @url in the cache up to date. Return: 0; as md_package_fetch_file(). */
static int update(struct search *s, const char *url, const char *path, struct mp_err *err)
{
	const struct md_package_fetch fetch = {s->with->dir, s->with->look};
	char *fresh;
	int r;

	if (asprintf(&fresh, "%s.%ld", path, (long)getpid()) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = md_package_fetch_file(&fetch, url, fresh, !access(path, R_OK) ? path : NULL, INDEX_MAX,
				  err);
	if (!r && access(fresh, R_OK)) {
		/* curl makes no file of an empty answer. */
		FILE *empty = fopen(fresh, "we");

		if (empty)
			fclose(empty);
	}
	if (!r && rename(fresh, path))
		r = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	free(fresh);
	return r == 1 ? 0 : r;
}

/* The file of an index, without its suffix: "dists/SUITE/COMPONENT/binary-amd64/Packages". */
static int find_index(struct search *s, const struct md_package_place *place, const char *name,
		      char **path, struct mp_err *err)
{
	int r = -ENOENT;

	*path = NULL;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && r == -ENOENT; i++) {
		char *at;

		if (asprintf(&at, "%s/%s%s", place->base, name, suffixes[i]) < 0)
			return mp_err_set(err, ENOMEM, "out of memory");
		if (place->is_url) {
			*path = cached_path(s, at);
			r = *path ? update(s, at, *path, err)
				  : mp_err_set(err, ENOMEM, "out of memory");
		} else if (!access(at, R_OK)) {
			*path = strdup(at);
			r = *path ? 0 : mp_err_set(err, ENOMEM, "out of memory");
		}
		free(at);
		if (r) {
			free(*path);
			*path = NULL;
		}
	}
	return r == -ENOENT
		       ? mp_err_set(err, ENOENT, "%s/%s: there is no such index", place->base, name)
		       : r;
}

/* ---- packages ------------------------------------------------------------------------------ */

static bool is_as_said(const char *path, const struct md_package_entry *e, struct mp_err *err)
{
	struct md_whole_file file = {0};
	bool is = !md_whole_file_open(path, &file, err);

	if (is && e->size && e->size != file.size) {
		mp_err_set(err, EBADMSG, "%s: has %zu bytes, not the %llu that the index says",
			   e->filename, file.size, (unsigned long long)e->size);
		is = false;
	} else if (is && e->has_sha256 && memcmp(file.hash, e->sha256, sizeof(file.hash)) != 0) {
		mp_err_set(err, EBADMSG, "%s: has another SHA-256 than the index says",
			   e->filename);
		is = false;
	}
	md_whole_file_close(&file);
	return is;
}

/* Takes the file from the package of an entry. Return: 0, -ENODATA: it has another one,
 * -ENOENT, -EAGAIN, -EBADMSG, -ECANCELED, -errno. */
static int take_package(struct search *s, const struct md_package_place *place,
			const struct md_package_entry *e, struct mp_err *err)
{
	const struct md_package_fetch fetch = {s->with->dir, s->with->look};
	const char *name = !strncmp(e->filename, "./", 2) ? e->filename + 2 : e->filename;
	char *at = NULL, *copy = NULL;
	int r = 0;

	if (!e->filename[0])
		return mp_err_set(err, EBADMSG, "%s: the index names no file", e->is.name);
	if (asprintf(&at, "%s/%s", place->base, name) < 0 ||
	    (place->is_url && asprintf(&copy, "%s/package.deb", s->with->dir) < 0)) {
		free(at);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	if (place->is_url)
		r = md_package_fetch_file(&fetch, at, copy, NULL,
					  e->size && e->size < PACKAGE_MAX ? e->size : PACKAGE_MAX,
					  err);
	if (!r && !is_as_said(copy ? copy : at, e, err))
		r = -EBADMSG;
	if (!r)
		r = md_package_files_take(copy ? copy : at, at, s->id, s->out, &s->with->look, err);
	if (copy)
		unlink(copy);
	free(copy);
	free(at);
	return r;
}

/* The packages that have the file according to an entry with its build-id. */
static void note_names(struct search *s, const struct md_package_entry *e)
{
	struct md_package_name names[NAMES_MAX];
	size_t nr = md_package_depends(e->depends, names, NAMES_MAX);

	for (size_t i = 0; i < nr && s->nr_names < NAMES_MAX; i++)
		s->names[s->nr_names++] = names[i];
}

/*
 * The packages that an index names. @by_names: those that were noted; else those with the build-id themselves, and
 * what they depend on is noted. Return: 0; -ENOENT; -ECANCELED.
 */
static int take_entries(struct search *s, const struct md_package_place *place,
			const struct md_package_entry *entries, size_t nr, bool by_names,
			struct mp_err *err)
{
	int r = -ENOENT;

	for (size_t i = 0; i < nr && r && r != -ECANCELED; i++) {
		struct mp_err why = {""};

		/* A package of debug information has not the file itself. */
		if (!by_names) {
			note_names(s, &entries[i]);
			if (md_package_depends(entries[i].depends,
					       &(struct md_package_name){.name = ""}, 1))
				continue;
		}
		r = take_package(s, place, &entries[i], &why);
		if (r == -ECANCELED)
			mp_err_set(err, ECANCELED, "%s", why.msg);
		else if (r && (r != -ENODATA || s->names[0].version[0]))
			note(s, r, &why);
	}
	return !r || r == -ECANCELED ? r : -ENOENT;
}

static int search_index(struct search *s, const struct md_package_place *place, const char *name,
			bool by_names, struct mp_err *err)
{
	const struct md_package_query query = {.build_id = by_names ? NULL : s->build_id,
					       .names = s->names,
					       .nr_names = by_names ? s->nr_names : 0};
	struct md_package_entry *entries = NULL;
	struct mp_err why = {""};
	size_t nr = 0;
	char *path;
	int r = find_index(s, place, name, &path, &why);

	if (!r)
		r = md_package_index_read(path, &query, s->with->dir, &s->with->look, &entries, &nr,
					  &why);
	free(path);
	if (!r) {
		s->nr_indexes++;
		r = take_entries(s, place, entries, nr, by_names, err);
	} else if (r == -ECANCELED) {
		mp_err_set(err, ECANCELED, "%s", why.msg);
	} else if (r != -ENOENT || place->suite || place->is_url) {
		/* A folder need not have an index. */
		if (!by_names)
			note(s, r, &why);
		r = -ENOENT;
	}
	free(entries);
	return r;
}

/* ---- places -------------------------------------------------------------------------------- */

static int search_indexes(struct search *s, const struct md_package_place *place, bool by_names,
			  struct mp_err *err)
{
	int r = -ENOENT;

	if (!place->suite)
		return search_index(s, place, "Packages", by_names, err);
	for (size_t i = 0; i < place->nr_components && r == -ENOENT; i++) {
		char *name;

		if (asprintf(&name, "dists/%s/%s/binary-amd64/Packages", place->suite,
			     place->components[i]) < 0)
			return mp_err_set(err, ENOMEM, "out of memory");
		r = search_index(s, place, name, by_names, err);
		free(name);
	}
	return r;
}

/* Notes the packages that have a file of the module's name. Return: 0, -ECANCELED. */
static int note_contents(struct search *s, const struct md_package_place *place,
			 const char *component, struct mp_err *err)
{
	const struct md_package_search *with = s->with;
	struct mp_err why = {""};
	char *name, *path;
	size_t nr = 0;
	int r;

	if (asprintf(&name, "dists/%s/%s/Contents-amd64", place->suite, component) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = find_index(s, place, name, &path, &why);
	if (!r)
		r = md_package_contents_read(path, with->name, &with->packages->names, with->dir,
					     &with->look, &s->names[s->nr_names],
					     NAMES_MAX - s->nr_names, &nr, &why);
	s->nr_names += nr;
	free(path);
	free(name);
	if (r == -ECANCELED)
		return mp_err_set(err, ECANCELED, "%s", why.msg);
	/* A mirror need not have one. */
	if (r && r != -ENOENT)
		note(s, r, &why);
	return 0;
}

/* By the name of the file, for mirrors without the archive of debug information. */
static int search_contents(struct search *s, struct mp_err *err)
{
	const struct md_packages *p = s->with->packages;
	int r = 0;

	if (!s->with->name || !s->with->name[0])
		return -ENOENT;
	s->nr_names = 0;
	for (size_t i = 0; i < p->nr; i++)
		for (size_t k = 0; p->places[i].suite && k < p->places[i].nr_components && !r; k++)
			r = note_contents(s, &p->places[i], p->places[i].components[k], err);
	if (r)
		return r;
	r = -ENOENT;
	for (size_t i = 0; s->nr_names && i < p->nr && r == -ENOENT; i++)
		r = search_indexes(s, &p->places[i], true, err);
	return r;
}

static int search_folder(struct search *s, const struct md_package_place *place, struct mp_err *err)
{
	const struct md_package_folder folder = {.cache = s->with->packages->cache,
						 .dir = s->with->dir,
						 .look = s->with->look,
						 .say = s->with->say,
						 .say_arg = s->with->say_arg};
	struct mp_err why = {""};
	int r = md_package_folder_take(&folder, place->base, s->id, s->out, &why);

	s->nr_folders += !r || r == -ENOENT;
	if (r == -ECANCELED)
		return mp_err_set(err, ECANCELED, "%s", why.msg);
	if (r && r != -ENOENT) {
		note(s, r, &why);
		r = -ENOENT;
	}
	return r;
}

/* Indexes first: they cost less than a look into each package. */
static int search_all(struct search *s, struct mp_err *err)
{
	const struct md_packages *p = s->with->packages;
	int r = -ENOENT;

	for (size_t i = 0; s->build_id[0] && i < p->nr && r == -ENOENT; i++)
		r = search_indexes(s, &p->places[i], false, err);
	for (size_t i = 0; s->nr_names && i < p->nr && r == -ENOENT; i++)
		r = search_indexes(s, &p->places[i], true, err);
	if (r == -ENOENT && !s->nr_names)
		r = search_contents(s, err);
	for (size_t i = 0; i < p->nr && r == -ENOENT; i++)
		if (!p->places[i].suite && !p->places[i].is_url)
			r = search_folder(s, &p->places[i], err);
	return r;
}

int md_packages_take(const struct md_package_search *search, const struct mp_id *id,
		     const char *out, struct mp_err *err)
{
	struct search s = {.with = search, .id = id, .out = out};
	int r;

	mp_id_format_build_id(id, s.build_id);
	r = search_all(&s, err);
	if (r != -ENOENT)
		return r;
	if (s.lacks_answer)
		return mp_err_set(err, EAGAIN, "%s", s.why.msg);
	if (s.why.msg[0])
		return mp_err_set(err, ENOENT, "%s", s.why.msg);
	if (s.nr_names && s.names[0].version[0])
		return mp_err_set(err, ENOENT, "it is in %s %s, which no index has",
				  s.names[0].name, s.names[0].version);
	if (s.nr_names)
		return mp_err_set(err, ENOENT, "%s has another version of the file",
				  s.names[0].name);
	return mp_err_set(err, ENOENT, "no package lists this build-id");
}
