// SPDX-License-Identifier: Apache-2.0
/* verify_calls - checks the stubs of an output that samples calls by a clock of calls. */
#ifndef ME_VERIFY_CALLS_H
#define ME_VERIFY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find, recognise and read the section of an output that samples calls by their number. */
void vf_find_calls(struct vf *vf);
bool vf_is_call_section(const struct vf *vf, const struct mp_section *sec);
int vf_read_calls(const struct vf *vf);
/* Return: address of the call in the stub @p that samples calls; 0: @p is another one. */
uint64_t vf_sample_call(const struct vf *vf, const struct mp_map_piece *p);
/* Check what the stub @p does: bytes @b at @at. *@next: address behind that. */
int vf_check_call_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next);

#endif
