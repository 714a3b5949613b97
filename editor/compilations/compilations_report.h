// SPDX-License-Identifier: Apache-2.0
/*
 * compilations_report - a comparison of compilations: in words for people, as JSON for scripts.
 * Decides wording only. Called by morph_audit.
 */
#ifndef ME_COMPILATIONS_REPORT_H
#define ME_COMPILATIONS_REPORT_H

#include <stdio.h>

#include "editor/compilations/compilations.h"

void me_compilations_print(const struct me_compilations *result, FILE *out);
/* Return: 0, -ENOMEM or -EIO. */
int me_compilations_print_json(const struct me_compilations *result, FILE *out);
/* Is the new compilation faster as a whole, and was nothing in it shown to be slower? */
bool me_compilations_is_better(const struct me_compilations *result);

#endif
