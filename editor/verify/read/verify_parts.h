// SPDX-License-Identifier: Apache-2.0
/*
 * verify_parts - which pieces of the map stand in place of a call, and where control goes on
 * behind them.
 */
#ifndef ME_VERIFY_PARTS_H
#define ME_VERIFY_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

struct vf_insn;

/* Bytes of a direct call. */
#define VF_CALL_SIZE 5
/* Return: address of the call at the end of the original of @p; where it leads, 0: there is none. */
uint64_t vf_call_of(const struct mp_map_piece *p);
uint64_t vf_callee_of(const struct vf *vf, const struct mp_map_piece *p);
/* Find the pieces that stand in place of a call. Return: 0, -ENOMEM. */
int vf_find_inlined(struct vf *vf);
/* Is @p a part of such code, but not beside the call? */
bool vf_lies_apart(const struct vf *vf, const struct mp_map_piece *p);
/* Does an inlined piece stand for the code at @old? Looks at all pieces. */
bool vf_inlined_holds(const struct vf *vf, uint64_t old);
/* Does another part of the code that @p belongs to stand for @old, and start at @now? */
bool vf_is_part(const struct vf *vf, const struct mp_map_piece *p, uint64_t old, uint64_t now);
/* Is that part a later piece than @p? */
bool vf_is_part_behind(const struct vf *vf, const struct mp_map_piece *p, uint64_t old);
/*
 * Does control that comes to @now from another part, @p, go on as at the end of the last part beside the call: at the
 * place of its return, or, if the stack pointer is @raised where it was lowered, behind what stands there?
 */
bool vf_joins_last_part(const struct vf *vf, const struct mp_map_piece *p, bool raised,
			uint64_t now);
/* Does the copy @p lack the call at offset @k of the original, its last instruction, since the next
 * piece replaces it? */
bool vf_lacks_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);

/* Code that replaces a call, in place of the call. */
struct vf_inlined_code {
	uint32_t piece;	     /* its first */
	uint64_t call;	     /* old address */
	uint64_t callee;     /* old address of the function that the call leads to */
	uint64_t start, end; /* new addresses */
};

/* Does such code begin with piece @i, or at @now, unless it is empty? */
bool vf_inlined_code_at(const struct vf *vf, uint32_t i, struct vf_inlined_code *code);
bool vf_inlined_code(const struct vf *vf, uint64_t now, struct vf_inlined_code *code);
/*
 * Is the stack pointer lowered in place of the call that the copy @p lacks, as the call does? The parts behind @p then
 * have their original stack pointer.
 */
bool vf_lowers(const struct vf *vf, const struct mp_map_piece *p);
/* Bytes of the instruction that lowers it, and of the one that raises it again. */
#define VF_LOWER_SIZE 1
#define VF_RAISE_SIZE 5
/*
 * Does control leave the called function at the end of its inlined piece @p by the jump @last: to a place that no part
 * stands for? A call stands there.
 */
bool vf_leaves_by(const struct vf *vf, const struct mp_map_piece *p, const struct vf_insn *last);
/* The same, of the last instruction of its original. */
bool vf_leaves(const struct vf *vf, const struct mp_map_piece *p);
/* Does @p have, at offset @k, the instruction that raises the stack pointer again? */
bool vf_raises(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);
/* Is @p the last part beside the call? From it, control goes on behind the call. */
bool vf_is_last_part(const struct vf *vf, const struct mp_map_piece *p);

#endif
