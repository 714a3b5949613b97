// SPDX-License-Identifier: Apache-2.0
/* shell_words - prints words in a form that a shell reads back, for commands that messages
 * propose. Called by train_advice. */
#ifndef ME_SHELL_WORDS_H
#define ME_SHELL_WORDS_H

#include <stdio.h>

/* me_shell_word - prints @word, in quotes if the shell would change it otherwise. */
void me_shell_word(FILE *out, const char *word);
/* me_shell_words - prints all of @argv, NULL-terminated, each behind a blank. */
void me_shell_words(FILE *out, char *const *argv);

#endif
