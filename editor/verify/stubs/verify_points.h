// SPDX-License-Identifier: Apache-2.0
/* verify_points - checks the stubs at timing points in loops of audited functions. */
#ifndef ME_VERIFY_POINTS_H
#define ME_VERIFY_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

struct vf_row;

/* Return: the number of the timing point at @old_vaddr of an audited function; UINT32_MAX: none. */
uint32_t vf_point_at(const struct vf *vf, uint32_t function, uint64_t old_vaddr);
/* Is @p the stub at a timing point, which leads to its block in both versions? */
bool vf_is_point(const struct vf *vf, const struct mp_map_piece *p);
/* Return: address of the call in the stub @p of a timing point; 0: @p is none. */
uint64_t vf_point_call(const struct vf *vf, const struct mp_map_piece *p);
/* Return: the end of @call. */
uint64_t vf_point_call_end(uint64_t call);
/* Is it, at @at, cmpb $0, %gs:@byte(%rip)? */
bool vf_is_compare(const uint8_t *b, uint64_t at, uint64_t byte);
/* Is @now the row @old for a stack pointer below the red zone? */
bool vf_row_is_lower(const struct vf_row *old, const struct vf_row *now);

#endif
