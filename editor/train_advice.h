// SPDX-License-Identifier: Apache-2.0
/*
 * train_advice - what to do after a training that did not end with a faster file, or with one that
 * lies in a library: commands that can be typed as they are.
 */
#ifndef ME_TRAIN_ADVICE_H
#define ME_TRAIN_ADVICE_H

#include <stdio.h>

#include "editor/train.h"

/* me_train_advice - lines for people, or nothing. @rc: what me_train() returned. */
void me_train_advice(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *report, int rc);
/* me_train_outcome - one line for the report: what the audit said, and what became of the file. */
void me_train_outcome(FILE *out, const struct me_train_options *options,
		      const struct me_train_report *report);

#endif
