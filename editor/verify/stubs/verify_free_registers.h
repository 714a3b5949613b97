// SPDX-License-Identifier: Apache-2.0
/* verify_free_registers - decides whether a register is dead at an address of the original. */
#ifndef ME_VERIFY_FREE_REGISTERS_H
#define ME_VERIFY_FREE_REGISTERS_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Build what vf_register_is_dead() needs. Call after the scan. */
int vf_read_registers(struct vf *vf);
void vf_registers_fini(struct vf *vf);
/* Is general register @reg dead at @vaddr of the original: does nothing read it before it is
 * set? Several threads may call this at once. Return: 1: yes, 0: not proved, -ENOMEM. */
int vf_register_is_dead(const struct vf *vf, uint64_t vaddr, unsigned int reg);

#endif
