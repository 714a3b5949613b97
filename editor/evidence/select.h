// SPDX-License-Identifier: Apache-2.0
/*
 * select - the functions that the user names with --skip and --only.
 *
 * A word is a symbol's name, a shell pattern for such names, or an address such as 0x4012f0, which
 * names the function that holds the address. Several words are separated by commas. @FILE stands for
 * the words in FILE, one a line; a line that begins with # is a comment.
 */
#ifndef ME_SELECT_H
#define ME_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

struct me_word;

struct me_words {
	struct me_word *words;
	size_t nr;
};

/* Adds the words in @text. Return: 0, -errno with a message. Ownership: me_words_fini(@words). */
int me_words_add(struct me_words *words, const char *text, struct mp_err *err);
void me_words_fini(struct me_words *words);

/*
 * me_select_functions - sets @chosen[f] for each function f that a word names.
 * A word from a file may name nothing, since such lists serve several builds of a program; a word
 * from the command line must name a function. Return: 0, -ENOENT no function has that name, -ENOMEM.
 */
int me_select_functions(const struct mp_cfg *cfg, const struct me_words *words,
			unsigned char *chosen, struct mp_err *err);

#endif
