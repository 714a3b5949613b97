// SPDX-License-Identifier: Apache-2.0
/* report_object - prints what happened to a relocatable object or an archive. Called by cli_object. */
#ifndef ME_REPORT_OBJECT_H
#define ME_REPORT_OBJECT_H

#include <stdbool.h>
#include <stdio.h>

#include "editor/object/object.h"
#include "editor/verify/object/verify_object.h"

/* @options->output NULL: nothing was written. Return: 0, -ENOMEM, -EIO. */
int me_report_object(FILE *out, bool json, const struct me_optimize_options *options,
		     const char *program, const struct me_object_report *report);
int me_report_object_verified(FILE *out, bool json, const char *file, const char *original,
			      const struct me_verify_object_report *report);

#endif
