// SPDX-License-Identifier: Apache-2.0
/*
 * outputs_find - looks for files that may be the original of an output. Decides by names only
 * and opens the candidates; confirm then says which one is the original. Called by outputs.
 */
#ifndef MD_OUTPUTS_FIND_H
#define MD_OUTPUTS_FIND_H

#include <stddef.h>

#include "libprof/elf/id.h"
#include "libprof/store/store.h"

/*
 * md_outputs_find - open at most @max candidates: the path where the store last saw @original,
 * the backups of morph-optimize --in-place, a file of the same name in the directory above, and
 * the files beside @path. Of these, programs come first, then files with similar names. Return:
 * how many. Ownership: close() each of @fds.
 */
size_t md_outputs_find(struct mp_store *store, const struct mp_id *original, const char *path,
		       int *fds, size_t max);

#endif
