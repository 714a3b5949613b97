// SPDX-License-Identifier: Apache-2.0
/*
 * outputs_find - where the original of an output may be. Decides by names alone, and opens what has
 * one: which of the files is the original, if one is, confirm says. Called by outputs.
 */
#ifndef MD_OUTPUTS_FIND_H
#define MD_OUTPUTS_FIND_H

#include <stddef.h>

#include "libprof/id.h"
#include "libprof/store.h"

/*
 * md_outputs_find - open at most @max files: where the store saw @original last, the backups of
 * morph-optimize --in-place, a file of the same name one directory above @path, and the files beside @path: programs first,
 * then those whose names are most like its name.
 * Return: how many. Ownership: close() each of @fds.
 */
size_t md_outputs_find(struct mp_store *store, const struct mp_id *original, const char *path,
		       int *fds, size_t max);

#endif
