// SPDX-License-Identifier: Apache-2.0
/*
 * original - finds the file of a module on a builder, in directories. A file is taken only if its build-id and the
 * hash of its code are the module's. Called by the command "build".
 */
#ifndef MD_FLEET_ORIGINAL_H
#define MD_FLEET_ORIGINAL_H

#include "daemon/fleet/command.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

/*
 * md_fleet_original_find - searches the places in their order. Return: 0; -ENOENT: no place has it, with a
 * message. Ownership: free(*@path).
 */
int md_fleet_original_find(const struct mp_id *id, const struct md_places *places, char **path,
			   struct mp_err *err);

#endif
