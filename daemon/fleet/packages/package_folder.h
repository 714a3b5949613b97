// SPDX-License-Identifier: Apache-2.0
/*
 * package_folder - finds the package that has a file among all .deb files below a directory, which need no index.
 * Each package is read once: a small database remembers the identities of its files, until its size or time changes.
 * Called by packages.
 */
#ifndef MD_FLEET_PACKAGE_FOLDER_H
#define MD_FLEET_PACKAGE_FOLDER_H

#include "daemon/fleet/packages/package_files.h"

struct md_package_folder {
	const char *cache; /* directory of the database */
	const char *dir;   /* for files of this search */
	struct md_package_look look;
	/* Called with one line for each package that cannot be read, once for each state of its file. */
	void (*say)(void *arg, const char *text);
	void *say_arg;
};

/*
 * md_package_folder_take - writes the module's file to @out, from a package below @place. Symbolic links below it are
 * not followed. Return: 0; -ENOENT: no package has it; -ECANCELED; -errno.
 */
int md_package_folder_take(const struct md_package_folder *folder, const char *place,
			   const struct mp_id *id, const char *out, struct mp_err *err);

#endif
