// SPDX-License-Identifier: Apache-2.0
/*
 * package_contents - finds out by a Debian archive's Contents file which packages have a file of a name. For archives
 * whose index lists no build-ids. Called by packages.
 */
#ifndef MD_FLEET_PACKAGE_CONTENTS_H
#define MD_FLEET_PACKAGE_CONTENTS_H

#include "daemon/fleet/packages/package_index.h"
#include "daemon/fleet/file_names.h"

/*
 * md_package_contents_read - the packages that have a file of the name @wanted, a path or a hash by @names' salt, as
 * the fleet knows it. Paths in /bin, /sbin and /lib are also found below /usr, where they lead to. @dir: for a file of
 * this work. Return: 0, with at most @max @packages of any version; -EBADMSG: damaged; -ECANCELED; -errno.
 */
int md_package_contents_read(const char *path, const char *wanted,
			     const struct md_file_names *names, const char *dir,
			     const struct md_package_look *look, struct md_package_name *packages,
			     size_t max, size_t *nr, struct mp_err *err);

#endif
