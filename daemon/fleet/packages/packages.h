// SPDX-License-Identifier: Apache-2.0
/*
 * packages - finds the file of a module in archives of Debian packages: mirrors with an index, on disk or by http, and
 * folders of .deb files. Decides which package may have the file; the file itself is judged by its build-id and the
 * hash of its code, as files of other places are. Called by original.
 *
 * An index is believed as little as a folder. The signature of an archive's Release file is not checked. A package
 * must have the size and SHA-256 that the index says, so that a broken one is told from a wrong one.
 */
#ifndef MD_FLEET_PACKAGES_H
#define MD_FLEET_PACKAGES_H

#include "daemon/fleet/packages/package_files.h"
#include "daemon/fleet/file_names.h"

#define MD_PACKAGE_PLACES_MAX	  16
#define MD_PACKAGE_COMPONENTS_MAX 8

/* One place that has packages: an archive, or a folder. */
struct md_package_place {
	char *words;	   /* holds the text of the others */
	const char *base;  /* a directory or an URL, without a slash at its end */
	const char *suite; /* NULL: a folder, with or without an index of its own */
	const char *components[MD_PACKAGE_COMPONENTS_MAX];
	size_t nr_components;
	bool is_url;
};

struct md_packages {
	struct md_package_place places[MD_PACKAGE_PLACES_MAX];
	size_t nr;
	char *cache;		    /* directory of what is remembered from job to job */
	struct md_file_names names; /* with the salt of hashed names, if it is known */
};

/* One search. */
struct md_package_search {
	const struct md_packages *packages;
	const char *
		name; /* under which the fleet knows the file: a path or a hash; NULL or "": not known */
	const char *dir; /* for files of this search */
	struct md_package_look look;
	/* Called with one line about an index or a package that cannot be used. */
	void (*say)(void *arg, const char *text);
	void *say_arg;
};

/*
 * md_packages_add - adds "DIR|URL [SUITE [COMPONENT...]]", as in sources.list(5); main is the component if none is
 * named. Return: 0; -EINVAL, -ENOENT, -E2BIG with a message.
 */
int md_packages_add(struct md_packages *packages, const char *text, struct mp_err *err);
/*
 * md_packages_set_cache - uses the directory @cache, which is made if it is missing; NULL: the user's. Return: 0;
 * -EPERM: it is another user's; -errno.
 */
int md_packages_set_cache(struct md_packages *packages, const char *cache, struct mp_err *err);
void md_packages_fini(struct md_packages *packages);

/*
 * md_packages_take - writes the module's file to @out. Return: 0; -ENOENT: no package has it, and @err says how far
 * the search came; -EAGAIN: a server did not answer; -ECANCELED; -errno.
 */
int md_packages_take(const struct md_package_search *search, const struct mp_id *id,
		     const char *out, struct mp_err *err);

#endif
