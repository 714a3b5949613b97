// SPDX-License-Identifier: Apache-2.0
/*
 * install_output - makes the output of a build from its plan and this host's original, by this host's own
 * morph-optimize, which verifies it. Called by install.
 */
#ifndef MD_FLEET_INSTALL_OUTPUT_H
#define MD_FLEET_INSTALL_OUTPUT_H

#include "daemon/fleet/builds/wanted.h"

/*
 * md_install_make - writes the verified output to @path, which is nobody else's, and its hash to @hash. Return: 0;
 * -EPERM: the output does not verify; -ENOEXEC: the plan is damaged, or does not fit this file; -ESTALE: the build
 * was withdrawn meanwhile; else the server is gone, or this host has a fault.
 */
int md_install_make(PGconn *conn, const struct md_wanted *wanted, const char *original,
		    const char *path, uint8_t hash[MD_SHA256_SIZE], struct mp_err *err);

#endif
