// SPDX-License-Identifier: Apache-2.0
/*
 * package_fetch - gets files of a package archive over http or https, by the program curl. Believes nothing: callers
 * check what they get. Called by packages.
 */
#ifndef MD_FLEET_PACKAGE_FETCH_H
#define MD_FLEET_PACKAGE_FETCH_H

#include <stdint.h>

#include "daemon/fleet/packages/package_files.h"

struct md_package_fetch {
	const char *dir; /* for files of this work */
	struct md_package_look look;
};

/*
 * md_package_fetch_file - writes what @url names to @out, of at most @size_max bytes. @older: NULL, or the copy that
 * an earlier call made; then @out is made only if the server has something newer.
 * Return: 0; 1: @older is still new; -ENOENT: there is no such file; -EAGAIN: the server does not answer;
 * -EBADMSG: it is larger; -ECANCELED; -errno.
 */
int md_package_fetch_file(const struct md_package_fetch *fetch, const char *url, const char *out,
			  const char *older, uint64_t size_max, struct mp_err *err);

#endif
