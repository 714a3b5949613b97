// SPDX-License-Identifier: Apache-2.0
/*
 * control_word - where a block loads the control word of the x87 unit. On some processors the
 * instruction behind such an fldcw takes some hundred cycles where it crosses a 64-byte line: sqlite's
 * conversion of numbers to text ran ten times slower for that.
 */
#ifndef ME_CONTROL_WORD_H
#define ME_CONTROL_WORD_H

#include <stdint.h>

#include "libprof/cfg.h"

#define ME_FOLLOWERS_MAX 4
#define ME_FOLLOWER_LINE UINT64_C(64)

/* Instructions behind an fldcw: offsets in their block, the last byte's too. */
struct me_followers {
	struct {
		uint16_t first, last;
	} at[ME_FOLLOWERS_MAX];
	uint8_t nr;
};

/* The first ME_FOLLOWERS_MAX of @block's. */
void me_followers_find(const struct mp_cfg *cfg, uint32_t block, struct me_followers *out);

#endif
