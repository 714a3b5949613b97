// SPDX-License-Identifier: Apache-2.0
/*
 * explain - in words: what verify checked, how often, and what it assumes. Also runs
 * verify on two files. Called by report and cli_verify.
 */
#ifndef ME_EXPLAIN_H
#define ME_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "editor/optimize/optimize.h"
#include "editor/verify/verify.h"
#include "libprof/base/err.h"

/* me_explain_text - @relinkable: the original was linked with --emit-relocs. */
void me_explain_text(FILE *out, const struct me_verify_report *report, bool relinkable);
/* me_explain_json - three arrays, "checked", "owned" and "assumed". Return: NULL if out of memory. */
json_t *me_explain_json(const struct me_verify_report *report, bool relinkable);

/*
 * me_verify_files - could morph-optimize have made the file @options->input from
 * @original? If @options names the original's debug file, the debug file of the output is
 * checked, too.
 * Return: 0; -EPERM if not, with the first difference in @err; else -errno.
 */
int me_verify_files(const char *original, const struct me_optimize_options *options,
		    struct me_verify_report *report, bool *relinkable, struct mp_err *err);

#endif
