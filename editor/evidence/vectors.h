// SPDX-License-Identifier: Apache-2.0
/*
 * vectors - finds a vector register that no instruction of a file names.
 *
 * By the ABI a callee may change all vector registers. A compiler that sees caller and callee may
 * rely on a register that the callee does not change. But it relies on no register that the file
 * never names.
 */
#ifndef ME_VECTORS_H
#define ME_VECTORS_H

#include <stdint.h>

#include "libprof/elf/elf.h"

#define ME_NO_VECTOR 0

/* Return: the highest of xmm8 to xmm15 that no instruction in the executable sections of @elf
 * names; ME_NO_VECTOR: none, or bytes that do not decode, or AVX code, which is not looked at
 * closely. */
uint8_t me_vectors_unnamed(const struct mp_elf *elf);

#endif
