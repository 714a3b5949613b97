// SPDX-License-Identifier: Apache-2.0
/*
 * train_advice - commands that the user can type after a training: to continue an audit, to optimise
 * another file, or to use a new library.
 */
#ifndef ME_TRAIN_ADVICE_H
#define ME_TRAIN_ADVICE_H

#include <stdio.h>

#include "editor/train/train.h"

/* me_train_advice - lines for people, or nothing. @rc: what me_train() returned. */
void me_train_advice(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *report, int rc);
/* me_train_outcome - lines of the report: the result of the audit, and the fate of the new version. */
void me_train_outcome(FILE *out, const struct me_train_options *options,
		      const struct me_train_report *report);

#endif
