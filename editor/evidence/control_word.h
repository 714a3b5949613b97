// SPDX-License-Identifier: Apache-2.0
/*
 * control_word - instructions that follow an fldcw, which loads the control word of the
 * x87 unit. On some processors such an instruction takes some hundred cycles if it
 * crosses a 64-byte line: sqlite's conversion of numbers to text ran ten times slower.
 */
#ifndef ME_CONTROL_WORD_H
#define ME_CONTROL_WORD_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"

#define ME_AFTER_FLDCW_MAX  4
#define ME_AFTER_FLDCW_LINE UINT64_C(64)

/* Instructions after an fldcw: offsets in the block of their first and last byte. */
struct me_after_fldcw {
	struct {
		uint16_t first, last;
	} at[ME_AFTER_FLDCW_MAX];
	uint8_t nr;
};

/* me_after_fldcw_find - the first ME_AFTER_FLDCW_MAX of such instructions in @block. */
void me_after_fldcw_find(const struct mp_cfg *cfg, uint32_t block, struct me_after_fldcw *out);

#endif
