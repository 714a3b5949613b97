// SPDX-License-Identifier: Apache-2.0
/* verify_parallel - runs a check of many independent items on several threads. */
#ifndef ME_VERIFY_PARALLEL_H
#define ME_VERIFY_PARALLEL_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * vf_go_on - @ret is the result of a check of one of many functions. If it refused the function,
 * notes that, so that the next functions can be checked, too.
 * Return: 0: go on; else @ret.
 */
int vf_go_on(const struct vf *vf, int ret);
/*
 * Call @run for items 0 to @nr_items, @grain at once, on several threads. Each has a result and a
 * message of its own. The results are added to that of @vf.
 * Return: the result of the first @run that fails, with its message.
 */
int vf_parallel(const struct vf *vf, uint32_t nr_items, uint32_t grain,
		int (*run)(const struct vf *vf, void *ctx, uint32_t first, uint32_t end),
		void *ctx);
/* Fill @vf->old.cuts; needs the FDEs. Each cut lies at a whole word of the bitmaps of the text. */
int vf_find_cuts(struct vf *vf);

#endif
