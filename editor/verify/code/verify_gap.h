// SPDX-License-Identifier: Apache-2.0
/*
 * verify_gap - decides whether bytes outside of all FDEs are code that leads between two
 * instructions.
 */
#ifndef ME_VERIFY_GAP_H
#define ME_VERIFY_GAP_H

#include "editor/verify/base/verify_context.h"

/* Set in @target those places of @maybe_target that must be believed. */
int vf_mark_gap_targets(struct vf *vf);

#endif
