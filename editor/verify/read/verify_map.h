// SPDX-License-Identifier: Apache-2.0
/*
 * verify_map - checks that the map's pieces lie where they may and do not overlap, and indexes
 * them for verify_piece_index.
 */
#ifndef ME_VERIFY_MAP_H
#define ME_VERIFY_MAP_H

#include "editor/verify/base/verify_context.h"

/* Check where the pieces lie, and make the index by which verify_piece_index finds them. */
int vf_index_pieces(struct vf *vf);

#endif
