// SPDX-License-Identifier: Apache-2.0
/* decoder - Zydis for 64-bit code, made once per thread; for what the quick decoder cannot tell. */
#ifndef MP_DECODER_H
#define MP_DECODER_H

#include <Zydis/Zydis.h>

/* Of the calling thread, for as long as it lives. */
const ZydisDecoder *mp_decoder(void);

#endif
