// SPDX-License-Identifier: Apache-2.0
/*
 * meter - the work meter of a program, in a file: its weights, and how well it tells the work. Chosen by counting, used
 * by step_trial. mp_meter.index is not kept: which counter is which, a list of places says (counting.h).
 */
#ifndef MD_METER_H
#define MD_METER_H

#include <stdbool.h>

#include "libprof/base/err.h"
#include "libprof/trial/meter_choose.h"

struct md_meter_words {
	char text[200];
};

int md_meter_save(const char *path, const struct mp_meter *meter, struct mp_err *err);
/*
 * One that predicts badly serves as well: the trial mends its weights (trial.h). Return: false: there is none, or it is
 * damaged.
 */
bool md_meter_load(const char *path, struct mp_meter *out);
/* For users: how well it tells the work. */
struct md_meter_words md_meter_words(const struct mp_meter *meter);

#endif
