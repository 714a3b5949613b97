// SPDX-License-Identifier: Apache-2.0
/*
 * output_name - the default name of a file's optimised version: FILE.morph.
 *
 * morph-optimize writes there without -o; morph-audit looks there without a second program.
 */
#ifndef ME_OUTPUT_NAME_H
#define ME_OUTPUT_NAME_H

#include <stddef.h>

#include "libprof/base/err.h"

/* Writes the name for @input to @buf. Return: 0, -ENAMETOOLONG. */
int me_output_name(const char *input, char *buf, size_t size, struct mp_err *err);

/*
 * me_output_replaceable - may morph-optimize write to @path, which the user did not name?
 * Return: 0 there is no file, or one that Morph wrote; -EEXIST another file; else -errno.
 */
int me_output_replaceable(const char *path, struct mp_err *err);

/*
 * me_output_made_of - was the optimised file at @output made of the file at @original?
 * Return: 0; -ENOENT there is no @output; -EINVAL it was made of another file, or is no output.
 */
int me_output_made_of(const char *output, const char *original, struct mp_err *err);

#endif
