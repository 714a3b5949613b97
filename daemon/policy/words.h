// SPDX-License-Identifier: Apache-2.0
/*
 * words - splits a command of a configuration file into words. There is no shell: nothing is
 * expanded. Words are separated by blanks; '...' and "..." keep blanks, and a backslash outside
 * of '...' keeps the next character. Called by policy.
 */
#ifndef MD_WORDS_H
#define MD_WORDS_H

#include "libprof/base/err.h"

/*
 * Return: 0; -EINVAL: a quote without an end, or no word; -ENOMEM. The message does not name
 * @text. Ownership: md_words_free(*@out), a vector that ends with NULL.
 */
int md_words_split(const char *text, char ***out, struct mp_err *err);
/* Takes NULL. */
void md_words_free(char **words);

#endif
