// SPDX-License-Identifier: Apache-2.0
/* package_place - where packages are, and where what is remembered of them lies; see packages.h. */
#include "daemon/fleet/packages/packages.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- places -------------------------------------------------------------------------------- */

/* A part of a path, or several: it must not lead out of the archive. */
static bool is_part(const char *word)
{
	for (const char *p = word; *p; p++)
		if (*p <= ' ' || *p > '~' || strchr("?#%\\", *p))
			return false;
	return word[0] != '/' && !strstr(word, "..");
}

static int set_base(struct md_package_place *place, const char *word, struct mp_err *err)
{
	char *real;
	size_t size;

	place->is_url = !strncmp(word, "http://", 7) || !strncmp(word, "https://", 8);
	if (!place->is_url && strstr(word, "://"))
		return mp_err_set(err, EINVAL, "%s: neither a directory nor http", word);
	/* Messages and lists of processes show the address. */
	if (place->is_url && memchr(word, '@', strcspn(word + 8, "/") + 8))
		return mp_err_set(err, EINVAL,
				  "no user or password may be in it: say them in ~/.netrc");
	real = place->is_url ? strdup(word) : realpath(word, NULL);
	if (!real)
		return mp_err_set(err, errno, "%s: %s", word, strerror(errno));
	size = strlen(real);
	while (place->is_url && size && real[size - 1] == '/')
		real[--size] = '\0';
	place->base = real;
	return 0;
}

static int set_words(struct md_package_place *place, struct mp_err *err)
{
	char *save, *word = strtok_r(place->words, " \t", &save);
	int r = word ? set_base(place, word, err) : mp_err_set(err, EINVAL, "no place is named");

	while (!r && (word = strtok_r(NULL, " \t", &save))) {
		if (!is_part(word))
			r = mp_err_set(err, EINVAL, "%s: no suite or component", word);
		else if (!place->suite)
			place->suite = word;
		else if (place->nr_components == MD_PACKAGE_COMPONENTS_MAX)
			r = mp_err_set(err, E2BIG, "more than %d components",
				       MD_PACKAGE_COMPONENTS_MAX);
		else
			place->components[place->nr_components++] = word;
	}
	/* sources.list(5) names a folder with an index of its own so. */
	if (place->suite && (!strcmp(place->suite, "./") || !strcmp(place->suite, ".")))
		place->suite = NULL;
	if (!place->nr_components)
		place->components[place->nr_components++] = "main";
	return r;
}

static void free_place(struct md_package_place *place)
{
	free((char *)place->base);
	free(place->words);
	*place = (struct md_package_place){0};
}

int md_packages_add(struct md_packages *packages, const char *text, struct mp_err *err)
{
	struct md_package_place *place = &packages->places[packages->nr];
	int r;

	if (packages->nr == MD_PACKAGE_PLACES_MAX)
		return mp_err_set(err, E2BIG, "at most %d places of packages",
				  MD_PACKAGE_PLACES_MAX);
	*place = (struct md_package_place){.words = strdup(text)};
	r = place->words ? set_words(place, err) : mp_err_set(err, ENOMEM, "out of memory");
	if (r)
		free_place(place);
	else
		packages->nr++;
	return r;
}

void md_packages_fini(struct md_packages *packages)
{
	for (size_t i = 0; i < packages->nr; i++)
		free_place(&packages->places[i]);
	free(packages->cache);
	*packages = (struct md_packages){.nr = 0};
}

/* ---- the cache ----------------------------------------------------------------------------- */

static char *default_cache(void)
{
	const char *dir = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	if (dir && *dir == '/')
		n = asprintf(&path, "%s/morph-fleet", dir);
	else if (!geteuid())
		n = asprintf(&path, "/var/cache/morph-fleet");
	else if (home && *home == '/')
		n = asprintf(&path, "%s/.cache/morph-fleet", home);
	else
		return NULL;
	return n < 0 ? NULL : path;
}

/* With the directories above it. */
static int make_dirs(const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(copy, 0755);
		*p = '/';
	}
	free(copy);
	return !mkdir(path, 0700) || errno == EEXIST ? 0 : -errno;
}

int md_packages_set_cache(struct md_packages *packages, const char *cache, struct mp_err *err)
{
	struct stat st;
	char *path = cache ? strdup(cache) : default_cache(), *real;
	int r;

	if (!path)
		return mp_err_set(err, EINVAL, "there is no $HOME: say --package-cache=DIR");
	r = make_dirs(path);
	real = r ? NULL : realpath(path, NULL);
	if (!real || stat(real, &st))
		r = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		r = mp_err_set(err, ENOTDIR, "%s: is no directory", path);
	else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		r = mp_err_set(err, EPERM, "%s: other users can write to it", path);
	free(path);
	if (r) {
		free(real);
	} else {
		free(packages->cache);
		packages->cache = real;
	}
	return r;
}
