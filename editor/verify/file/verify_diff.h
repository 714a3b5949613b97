// SPDX-License-Identifier: Apache-2.0
/*
 * verify_diff - checks that every byte that differs from the original belongs to a change that is
 * proved.
 */
#ifndef ME_VERIFY_DIFF_H
#define ME_VERIFY_DIFF_H

#include "editor/verify/base/verify_context.h"

/* Check that each byte of the old segments that changed belongs to one kind of change that is proved. */
int vf_check_diff(const struct vf *vf);
/* Static programs: check that every reference to .eh_frame changed. */
int vf_check_eh_refs(const struct vf *vf);

#endif
