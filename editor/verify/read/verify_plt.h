// SPDX-License-Identifier: Apache-2.0
/*
 * verify_plt - proves that a call or jump of a copy goes through the slot of the PLT stub that
 * the original's call or jump leads to.
 */
#ifndef ME_VERIFY_PLT_H
#define ME_VERIFY_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Bytes of `call *slot(%rip)` and of `jmp *slot(%rip)`. */
#define VF_SLOT_BRANCH 6
/* Return: the slot of the PLT stub at @stub of the original; 0: there is no stub. */
uint64_t vf_stub_slot(const struct vf *vf, uint64_t stub);
/*
 * Is the instruction at offset @k of the copy @p a call, or a jump, through the slot of the PLT
 * stub that the last instruction of the original calls, or jumps to?
 */
bool vf_is_via_slot(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);
/* The same for calls only. */
bool vf_is_slot_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);
/*
 * Does @p have, at offset @k, a call of what the jump at @jump of the original leads to: direct, or through the slot
 * of a PLT stub? Return: its bytes; 0: no.
 */
uint8_t vf_calls_instead(const struct vf *vf, const struct mp_map_piece *p, uint64_t k,
			 uint64_t jump);

#endif
