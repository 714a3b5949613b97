// SPDX-License-Identifier: Apache-2.0
/*
 * verify_piece_index - finds pieces of the map by their old and new addresses, and checks that
 * they do not overlap.
 */
#ifndef ME_VERIFY_PIECE_INDEX_H
#define ME_VERIFY_PIECE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Return: a piece whose original starts at @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_from(const struct vf *vf, uint64_t old_vaddr);
/* Return: a piece whose original contains @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_holding(const struct vf *vf, uint64_t old_vaddr);
/* Return: index of the piece with bytes that starts at @new_vaddr; nr_pieces: there is none. */
uint32_t vf_whole_piece(const struct vf *vf, uint64_t new_vaddr);
/* Does a copy of the block at @old start at @now? */
bool vf_is_copy(const struct vf *vf, uint64_t old, uint64_t now);
/* The same for a copy that is a later piece than @p, or has code. */
bool vf_is_copy_behind(const struct vf *vf, const struct mp_map_piece *p, uint64_t old,
		       uint64_t now);
/* May control that went to old address @old go to @now instead? */
bool vf_same_place(const struct vf *vf, uint64_t old, uint64_t now);
/* Not 0, because a call of a missing weak function leads to 0. */
#define VF_NOWHERE UINT64_MAX
/* Return: where control is when it falls through the end of copy @p; VF_NOWHERE: it cannot. */
uint64_t vf_falls_to(const struct vf *vf, const struct mp_map_piece *p);

#endif
