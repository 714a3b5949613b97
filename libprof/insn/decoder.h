// SPDX-License-Identifier: Apache-2.0
/*
 * decoder - Zydis for 64-bit code, set up once per thread, for instructions that the quick
 * decoder does not know.
 */
#ifndef MP_DECODER_H
#define MP_DECODER_H

#include <Zydis/Zydis.h>

/* The decoder of the calling thread; valid as long as the thread. */
const ZydisDecoder *mp_decoder(void);

#endif
