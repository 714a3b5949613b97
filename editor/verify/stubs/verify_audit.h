// SPDX-License-Identifier: Apache-2.0
/* verify_audit - checks the stubs of an output in which some functions have two versions. */
#ifndef ME_VERIFY_AUDIT_H
#define ME_VERIFY_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find and recognise the section of an output in which functions have two versions. */
void vf_find_audit(struct vf *vf);
bool vf_is_audit_section(const struct vf *vf, const struct mp_section *sec);
/* Is @p the stub at an exit of the audited function around it? */
bool vf_is_leave(const struct vf *vf, const struct mp_map_piece *p);
/* Return: the same for any stub that calls the runtime with the stack pointer below the red zone. */
uint64_t vf_lower_call(const struct vf *vf, const struct mp_map_piece *p);
/* Check what the stub @p of an audit does: bytes @b at @at. *@next: address behind that. */
int vf_check_audit_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
			uint64_t at, uint64_t *next);

#endif
