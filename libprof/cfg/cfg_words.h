// SPDX-License-Identifier: Apache-2.0
/* cfg_words - walks every place in data and relocations that holds or may hold an address. */
#ifndef MP_CFG_WORDS_H
#define MP_CFG_WORDS_H

#include "libprof/cfg/cfg_private.h"

enum mp_word_kind {
	MP_WORD_SURE,	/* a relocation */
	MP_WORD_LIKELY, /* an aligned word of data that holds the number */
	MP_WORD_CHANCE, /* unaligned, or relative to something unknown */
};

typedef void mp_word_fn(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind);

/* Calls @fn for each. @where: address of the word; 0 if it is not loaded. */
void mp_words_walk(const struct mp_cfg_build *b, mp_word_fn *fn, void *ctx);

/* True if the section holds words of the program. Unwind tables refer to code by design; other passes read them. */
bool mp_is_word_section(const struct mp_section *sec);
/* True if the word is a round number, or a string of up to 7 characters: such ones often equal an address. */
bool mp_is_other_word(uint64_t word);

#endif
