// SPDX-License-Identifier: Apache-2.0
/* verify_note - notes at which address a place names a function. */
#ifndef ME_VERIFY_NOTE_H
#define ME_VERIFY_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * Note that the address @old was replaced by @now somewhere.
 * Return: false if @now is neither @old nor the copy of the function that starts at @old.
 */
bool vf_note_pointer(const struct vf *vf, uint64_t old, uint64_t now);
/*
 * The same for a dynamic symbol's value. Without the linker's relocations, no other word or operand of a function may
 * change, and in a program with fixed addresses not even that.
 */
bool vf_note_symbol(const struct vf *vf, uint64_t old, uint64_t now);
/* Does the linker put an absolute address of 4 bytes there? */
bool vf_is_absolute(const struct mp_reloc *rel);
/* vf_note_pointer() for the 4 bytes @now at @at, which hold an absolute address by relocation. */
bool vf_note_field(const struct vf *vf, uint64_t at, const uint8_t *now);
void vf_note_operand(const struct vf *vf, uint64_t insn, uint8_t len, uint64_t to);

#endif
