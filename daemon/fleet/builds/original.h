// SPDX-License-Identifier: Apache-2.0
/*
 * original - finds the file of a module on a builder: in directories, by debuginfod, or in Debian packages. A file is
 * taken only if its build-id and the hash of its code are the module's. Called by the command "build".
 */
#ifndef MD_FLEET_ORIGINAL_H
#define MD_FLEET_ORIGINAL_H

#include <stddef.h>

#include "daemon/fleet/packages/packages.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

/* The place that is no directory: what DEBUGINFOD_URLS says. */
#define MD_ORIGINAL_DEBUGINFOD "debuginfod"

/* The places where a builder looks for originals. It searches packages last, since these cost most. */
struct md_original_places {
	const char *const *places; /* directories, or MD_ORIGINAL_DEBUGINFOD */
	size_t nr;
	struct md_packages packages;
};

struct md_original_search {
	const struct md_original_places *places;
	const char *name; /* under which the fleet knows the file, if it does: see packages.h */
	const char *dir;  /* for files of this search */
	struct md_package_look look;
	/* Called with one line about an index or a package that cannot be used. */
	void (*say)(void *arg, const char *text);
	void *say_arg;
};

/*
 * md_fleet_original_find - searches the places in their order. Return: 0; -ENOENT: no place has it, -EAGAIN: a server
 * of packages did not answer, -ECANCELED: @look said so; with a message. Ownership: free(*@path).
 */
int md_fleet_original_find(const struct mp_id *id, const struct md_original_search *search,
			   char **path, struct mp_err *err);

#endif
