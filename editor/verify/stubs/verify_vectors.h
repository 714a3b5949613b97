// SPDX-License-Identifier: Apache-2.0
/*
 * verify_vectors - finds the vector registers that instructions of the original name, by
 * prefixes, opcode and ModRM. Called by verify_free_registers for verify_polls.
 */
#ifndef ME_VERIFY_VECTORS_H
#define ME_VERIFY_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Return: bits 8 to 15 for those of xmm8 to xmm15 that the instruction at @b names; or that any
 * instruction of the original names (needs the scan). */
uint32_t vf_vectors_of(const uint8_t *b, size_t avail);
uint32_t vf_named_vectors(const struct vf *vf);

#endif
