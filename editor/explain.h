// SPDX-License-Identifier: Apache-2.0
/* explain - what verify looked at, how often, and what it takes for granted, in words. */
#ifndef ME_EXPLAIN_H
#define ME_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "editor/optimize.h"
#include "editor/verify.h"
#include "libprof/err.h"

/* @relinkable: the original was linked with --emit-relocs. */
void me_explain_text(FILE *out, const struct me_verify_report *report, bool relinkable);
/* Two arrays, "checked" and "assumed". Return: NULL without memory. */
json_t *me_explain_json(const struct me_verify_report *report, bool relinkable);

/*
 * me_verify_files - is the file at @options->input what morph-optimize may have made of @original,
 * with its debug file, if @options name one of the original's?
 * Return: 0; -EPERM it is not, with the first difference in @err; else -errno.
 */
int me_verify_files(const char *original, const struct me_optimize_options *options,
		    struct me_verify_report *report, bool *relinkable, struct mp_err *err);

#endif
