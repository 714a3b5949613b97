// SPDX-License-Identifier: Apache-2.0
/*
 * vectors - which vector registers no instruction of a file names.
 *
 * By the ABI callees may change all of them. Only a compiler that sees caller and callee at once may
 * rely on one that the callee leaves alone; in a file that never names it nobody does.
 */
#ifndef ME_VECTORS_H
#define ME_VECTORS_H

#include <stdint.h>

#include "libprof/elf.h"

#define ME_NO_VECTOR 0

/* The highest of xmm8 to xmm15 that @elf never names, by all of its executable sections from their
 * starts on; or ME_NO_VECTOR: there is none, some bytes are no instructions, or what is named in AVX
 * code, which is not looked at more closely. */
uint8_t me_vectors_unnamed(const struct mp_elf *elf);

#endif
