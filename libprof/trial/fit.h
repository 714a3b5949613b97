// SPDX-License-Identifier: Apache-2.0
/*
 * fit - least squares with weights that are not negative, for a few columns (Lawson and Hanson,
 * 1974). Called by meter_choose and trial.
 */
#ifndef MP_FIT_H
#define MP_FIT_H

#include <stddef.h>

enum {
	MP_FIT_MAX = 9 /* columns: the counters of a meter, and one more of a trial */
};

struct mp_fit {
	size_t nr;
	double gram[MP_FIT_MAX][MP_FIT_MAX]; /* products of columns with each other */
	double target[MP_FIT_MAX];	     /* products of columns with the target */
};

/*
 * mp_fit - the weights of @fit's columns that lower the sum of squares most. Columns that depend on
 * others get 0. Return: by how much the sum of squares is lower than with all weights 0.
 */
double mp_fit(const struct mp_fit *fit, double *weights);

#endif
