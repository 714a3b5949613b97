// SPDX-License-Identifier: Apache-2.0
/*
 * original - finds the file of a module on a builder: in directories, or by debuginfod. A file is taken
 * only if its build-id and the hash of its code are the module's. Called by the command "build".
 */
#ifndef MD_FLEET_ORIGINAL_H
#define MD_FLEET_ORIGINAL_H

#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"

/* The place that is no directory: what DEBUGINFOD_URLS says. */
#define MD_ORIGINAL_DEBUGINFOD "debuginfod"

/*
 * md_fleet_original_find - searches @places in their order. @dir: for files of this search.
 * Return: 0; -ENOENT: no place has it, with a message. Ownership: free(*@path).
 */
int md_fleet_original_find(const struct mp_id *id, const char *const *places, size_t nr,
			   const char *dir, char **path, struct mp_err *err);

#endif
