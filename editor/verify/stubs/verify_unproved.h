// SPDX-License-Identifier: Apache-2.0
/* verify_unproved - registers that stubs set and that are not proved dead. */
#ifndef ME_VERIFY_UNPROVED_H
#define ME_VERIFY_UNPROVED_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Mark @p in @unproved unless @reg is proved dead at its block. Return: 0, -ENOMEM. */
int vf_check_dead(const struct vf *vf, const struct mp_map_piece *p, unsigned int reg);
/* Report the function at @old_vaddr as one that is not proved. */
void vf_note_unproved(const struct vf *vf, uint64_t old_vaddr, uint16_t registers);
/* Call when all stubs were checked: refuses all marked stubs together. */
int vf_check_unproved(const struct vf *vf);

#endif
