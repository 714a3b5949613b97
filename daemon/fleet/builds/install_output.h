// SPDX-License-Identifier: Apache-2.0
/*
 * install_output - makes the output of a build from its delta and this host's original, and has it proved.
 * The file has a temporary name until then. Called by install.
 */
#ifndef MD_FLEET_INSTALL_OUTPUT_H
#define MD_FLEET_INSTALL_OUTPUT_H

#include "daemon/fleet/builds/wanted.h"

/*
 * md_install_make - writes the output to @path, which is replaced, and syncs it. Its bytes have the hash
 * that the server said, which proves nothing. Return: 0; -EBADMSG: the build is not sound; -ENOEXEC: it was
 * made from other bytes than the file @original has; -ESTALE: it was withdrawn meanwhile; -ENOSPC; as
 * md_fleet_fail(), -errno. After an error there is no file.
 */
int md_install_make(PGconn *conn, const struct md_wanted *wanted, const char *original,
		    const char *path, struct mp_err *err);

/*
 * md_install_prove - `morph-optimize verify' of @output against @original, in a process of its own.
 * Return: 0: it is proved; -EPERM: it is not, and @err says why; -errno: it could not be run.
 */
int md_install_prove(const char *original, const char *output, struct mp_err *err);

#endif
