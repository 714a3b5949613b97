// SPDX-License-Identifier: Apache-2.0
/*
 * verify_padding - decides whether the jump over a small function may reach into the padding
 * behind it.
 */
#ifndef ME_VERIFY_PADDING_H
#define ME_VERIFY_PADDING_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * May the jump at @at, over the start of the function @fde, reach up to @end, behind the
 * function?
 */
bool vf_patch_may_reach(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end);

#endif
