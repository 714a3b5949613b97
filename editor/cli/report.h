// SPDX-License-Identifier: Apache-2.0
/* report - prints what morph-optimize did, for people and for scripts. Called by
 * morph-optimize. */
#ifndef ME_REPORT_H
#define ME_REPORT_H

#include <stdio.h>

#include "editor/optimize/optimize.h"
#include "editor/replace/inplace.h"
#include "editor/train/train.h"

#define ME_REPORT_SCHEMA 1

/* Print the report as text. */
void me_report_text(FILE *out, const struct me_optimize_options *options,
		    const struct me_optimize_report *report);
/* Print one JSON object and a newline. Return: 0, -ENOMEM, -EIO. */
int me_report_json(FILE *out, const struct me_optimize_options *options,
		   const struct me_optimize_report *report);
/* Print what me_verify_files() proved. Return: 0, -ENOMEM, -EIO. */
int me_report_verified(FILE *out, bool json, const char *original,
		       const struct me_optimize_options *options,
		       const struct me_verify_report *verified, bool relinkable);
/* Print what me_train() did. */
void me_report_train(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *report, bool written);
/* The same as one JSON object. Return: 0, -ENOMEM, -EIO. */
int me_report_train_json(FILE *out, const struct me_train_options *options,
			 const struct me_train_report *report, bool written);
/* Print what me_adopt() did. Return: 0, -ENOMEM, -EIO. */
int me_report_adopted(FILE *out, bool json, const char *input, const char *output,
		      const struct me_inplace_report *done);
/* Print what me_restore() did. Return: 0, -ENOMEM, -EIO. */
int me_report_restored(FILE *out, bool json, const char *input,
		       const struct me_inplace_report *done);

#endif
