// SPDX-License-Identifier: Apache-2.0
/* shell_words - words as one would type them for a shell, for commands that messages propose. */
#ifndef ME_SHELL_WORDS_H
#define ME_SHELL_WORDS_H

#include <stdio.h>

/* me_shell_word - @word, in quotes where the shell would read it otherwise. */
void me_shell_word(FILE *out, const char *word);
/* me_shell_words - all of @argv, NULL-terminated, with a blank before each of them. */
void me_shell_words(FILE *out, char *const *argv);

#endif
