// SPDX-License-Identifier: Apache-2.0
/* explain - says in words what verify checked, how often, and what it assumes. */
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
 * me_verify_files - verifies that morph-optimize may have made the file at @options->input of
 * @original; with its debug file, if @options name one of the original.
 * Return: 0; -EPERM: it may not, with the first difference in @err; otherwise -errno.
 */
int me_verify_files(const char *original, const struct me_optimize_options *options,
		    struct me_verify_report *report, bool *relinkable, struct mp_err *err);

#endif
