// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_tool - gets profiles of a fleet into a temporary database, by the program morph-fleet. The
 * other programs are not linked with PostgreSQL's library, and work on machines without it. For
 * main() of these programs.
 */
#ifndef MP_FLEET_TOOL_H
#define MP_FLEET_TOOL_H

#include <stddef.h>

#include "libprof/base/err.h"

/*
 * mp_fleet_tool_pull - runs `morph-fleet pull' with @arguments, a list that NULL ends, and writes the
 * path of the database to @path. @connection: libpq's; it is passed on in the environment, since
 * everybody can read command lines. The database is removed when this process ends, however it ends.
 * Return: 0; -ENOENT: morph-fleet is not installed; -ENODATA: the fleet has no profile; -EIO: it
 * failed. If @err stays empty, morph-fleet has said why.
 */
int mp_fleet_tool_pull(const char *connection, const char *const *arguments, char *path,
		       size_t size, struct mp_err *err);
/* Removes the database earlier. Open descriptors of it stay valid. */
void mp_fleet_tool_remove(const char *path);

#endif
