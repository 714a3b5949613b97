// SPDX-License-Identifier: Apache-2.0
/*
 * build_options - the options of morph-optimize that a build may have, as one text in the database.
 * Whoever can write there must not choose which files a builder reads or writes: only options without
 * names of files are allowed. Called by the commands "request" and "build".
 */
#ifndef MD_FLEET_BUILD_OPTIONS_H
#define MD_FLEET_BUILD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"

#define MD_BUILD_WORDS_MAX 32

struct md_build_options {
	char *words[MD_BUILD_WORDS_MAX + 1]; /* ends with NULL */
	size_t nr;
	bool no_profile; /* they lay the code out without a profile */
	char text[1001]; /* what @words point into */
};

/* Takes @text apart at its spaces. Return: 0; -EINVAL: such an option is not allowed, with a message. */
int md_build_options_parse(const char *text, struct md_build_options *out, struct mp_err *err);
/* Joins @nr words. Return: 0, -EINVAL: as above, or too long. */
int md_build_options_join(char *const *words, size_t nr, struct md_build_options *out,
			  char text[1001], struct mp_err *err);

#endif
