// SPDX-License-Identifier: Apache-2.0
/* verify_marker - finds the instructions of the original that a copy may lack. */
#ifndef ME_VERIFY_MARKER_H
#define ME_VERIFY_MARKER_H

#include "editor/verify/base/verify_context.h"

/* Find @may_lack, the instructions that serve only code markers. Call after the scan. Return: 0,
 * -ENOMEM. */
int vf_find_markers(struct vf *vf);

#endif
