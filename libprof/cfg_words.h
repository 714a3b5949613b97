// SPDX-License-Identifier: Apache-2.0
/* cfg_words - every place in data and relocations where an address stands or may stand. */
#ifndef MP_CFG_WORDS_H
#define MP_CFG_WORDS_H

#include "libprof/cfg_private.h"

enum mp_word_kind {
	MP_WORD_SURE,	/* a relocation */
	MP_WORD_LIKELY, /* an aligned word of data that holds the number */
	MP_WORD_CHANCE, /* unaligned, or relative to something unknown */
};

typedef void mp_word_fn(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind);

/* @where: the word's address, 0 for what is not loaded. */
void mp_words_walk(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx);

#endif
