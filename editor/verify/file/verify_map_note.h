// SPDX-License-Identifier: Apache-2.0
/*
 * verify_map_note - checks that the notes of the map have nothing else, and that the note of
 * replaced calls is true.
 */
#ifndef ME_VERIFY_MAP_NOTE_H
#define ME_VERIFY_MAP_NOTE_H

#include "editor/verify/base/verify_context.h"

/* Return: file offsets of the build-id that a PT_NOTE leads to; {0, 0}: none. */
struct vf_range vf_build_id(const struct mp_elf *elf);
/* Check that the map's notes hold nothing but the map, and name the calls that inlined pieces replace. */
int vf_check_map_note(const struct vf *vf);

#endif
