// SPDX-License-Identifier: Apache-2.0
/*
 * verify_wants - finds the registers that functions want of one another, callees of their callers
 * and callers of their callees.
 */
#ifndef ME_VERIFY_WANTS_H
#define ME_VERIFY_WANTS_H

#include "editor/verify/base/verify_context.h"

/* Add to @changes of each FDE those of its callees and jump targets. */
void vf_find_changes(const struct vf *vf);
/* Find @in of all blocks, and set @wanted to the part of @in that is no push or spill. */
void vf_find_wants(const struct vf *vf);
/* Find @wanted of all blocks, and @results of each FDE. Call vf_find_wants() first. */
void vf_find_results(const struct vf *vf);
/*
 * Find @not_preserved of each FDE, by @changes. Callers reach a part only through functions that
 * jump to it. They may rely on a register if any of these functions keeps it.
 */
void vf_find_not_preserved(const struct vf *vf);

#endif
