// SPDX-License-Identifier: Apache-2.0
/*
 * advice - the commands that the user should run next, as lines to paste into a shell.
 *
 * Called by cli_work.
 */
#ifndef ME_ADVICE_H
#define ME_ADVICE_H

#include <stdio.h>

#include "editor/optimize/optimize.h"

/*
 * me_advice_next - after an output was written: how to audit the output, and how to put
 * it in place. @db: the database as the user named it; NULL if the default was read.
 */
void me_advice_next(FILE *out, const struct me_optimize_options *options, const char *db,
		    const struct me_optimize_report *report);

/*
 * me_advice_collect - after -ENODATA: how to collect the missing profile, and how many
 * seconds of the program's processor time that takes. @db: as above.
 */
void me_advice_collect(FILE *out, const struct me_optimize_options *options, const char *db,
		       const struct me_optimize_report *report);

#endif
