// SPDX-License-Identifier: Apache-2.0
/* verify_paths - checks an output that keeps path numbers in registers. */
#ifndef ME_VERIFY_PATHS_H
#define ME_VERIFY_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find, recognise and read the sections of an output that keeps path numbers in registers. */
void vf_find_paths(struct vf *vf);
bool vf_is_path_section(const struct vf *vf, const struct mp_section *sec);
int vf_read_paths(struct vf *vf);
/* Check what the stub @p does before it continues: bytes @b at @at. *@next: address behind
 * that. */
int vf_check_path_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next);

#endif
