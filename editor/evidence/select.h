// SPDX-License-Identifier: Apache-2.0
/*
 * select - the functions that the user names with --skip and --only.
 *
 * A word is a symbol's name, a shell pattern for such names, or an address such as 0x4012f0, which
 * names the function that holds the address. A pattern that matches an empty name, such as *, names
 * the functions without symbols, too. Several words are separated by commas. @FILE stands for
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
	bool given; /* also by a file that names nothing */
};

/* Adds the words in @text. Return: 0, -errno with a message. Ownership: me_words_fini(@words). */
int me_words_add(struct me_words *words, const char *text, struct mp_err *err);
void me_words_fini(struct me_words *words);
/* Return: the text of word @i, for the life of @words. *@from_file: the word stood in a file. */
const char *me_words_text(const struct me_words *words, size_t i, bool *from_file);

/* Sets @chosen[f] for each function f that @text names: one word. Return: does it name any? */
bool me_select_word(const struct mp_cfg *cfg, const char *text, unsigned char *chosen);
/*
 * me_select_functions - sets @chosen[f] for each function f that a word names.
 * A word from a file may name nothing, since such lists serve several builds of a program; a word
 * from the command line must name a function. Return: 0, -ENOENT no function has that name, -ENOMEM.
 */
int me_select_functions(const struct mp_cfg *cfg, const struct me_words *words,
			unsigned char *chosen, struct mp_err *err);

#endif
