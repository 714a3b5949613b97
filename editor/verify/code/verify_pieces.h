// SPDX-License-Identifier: Apache-2.0
/*
 * verify_pieces - checks that each copy is the same code as its original, and that control leaves
 * it for the same places.
 */
#ifndef ME_VERIFY_PIECES_H
#define ME_VERIFY_PIECES_H

#include "editor/verify/base/verify_context.h"

/* Check all copies and stubs. */
int vf_check_pieces(const struct vf *vf);

#endif
