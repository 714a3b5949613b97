// SPDX-License-Identifier: Apache-2.0
/* fit - weights that are not negative, by an active set; see fit.h. */
#include "libprof/trial/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A part of a column's square; less of it is left only by columns that depend on others. */
#define DEPENDS 1e-9
/* Each round adds a column; each inner round takes one away. Few are ever needed. */
#define ROUNDS 64

/*
 * Solves for the columns that are @in, by Cholesky's method. Return: false: they depend on each
 * other; @out is not complete then.
 */
static bool solve(const struct mp_fit *fit, const bool *in, double *out)
{
	double l[MP_FIT_MAX][MP_FIT_MAX], y[MP_FIT_MAX];
	size_t at[MP_FIT_MAX], nr = 0;

	for (size_t i = 0; i < fit->nr; i++)
		if (in[i])
			at[nr++] = i;
	for (size_t i = 0; i < nr; i++) {
		y[i] = fit->target[at[i]];
		for (size_t j = 0; j <= i; j++) {
			double sum = fit->gram[at[i]][at[j]];

			for (size_t k = 0; k < j; k++)
				sum -= l[i][k] * l[j][k];
			if (j < i)
				l[i][j] = sum / l[j][j];
			else if (sum > DEPENDS * fit->gram[at[i]][at[i]])
				l[i][i] = sqrt(sum);
			else
				return false;
		}
		for (size_t k = 0; k < i; k++)
			y[i] -= l[i][k] * y[k];
		y[i] /= l[i][i];
	}
	memset(out, 0, fit->nr * sizeof(*out));
	for (size_t i = nr; i-- > 0;) {
		for (size_t k = i + 1; k < nr; k++)
			y[i] -= l[k][i] * y[k];
		out[at[i]] = y[i] /= l[i][i];
	}
	return true;
}

/* The column outside whose weight is best raised, in units of its length; @fit->nr: none. */
static size_t best_outside(const struct mp_fit *fit, const bool *in, const bool *barred,
			   const double *weights)
{
	size_t best = fit->nr;
	double most = 0;

	for (size_t i = 0; i < fit->nr; i++) {
		double slope = fit->target[i];

		if (in[i] || barred[i] || !(fit->gram[i][i] > 0))
			continue;
		for (size_t j = 0; j < fit->nr; j++)
			slope -= fit->gram[i][j] * weights[j];
		if (slope > DEPENDS * fabs(fit->target[i]) &&
		    slope / sqrt(fit->gram[i][i]) > most) {
			most = slope / sqrt(fit->gram[i][i]);
			best = i;
		}
	}
	return best;
}

/* Goes from @weights towards @solved until the first weight is 0, and takes that column out. */
static void step_back(const struct mp_fit *fit, bool *in, double *weights, const double *solved)
{
	double part = 1;
	size_t first = fit->nr;

	for (size_t i = 0; i < fit->nr; i++)
		if (in[i] && solved[i] <= 0 && weights[i] / (weights[i] - solved[i]) <= part) {
			part = weights[i] / (weights[i] - solved[i]);
			first = i;
		}
	for (size_t i = 0; i < fit->nr; i++)
		if (in[i])
			weights[i] = fmax(0, weights[i] + part * (solved[i] - weights[i]));
	if (first < fit->nr) {
		in[first] = false;
		weights[first] = 0;
	}
}

static bool all_above_zero(const struct mp_fit *fit, const bool *in, const double *solved)
{
	for (size_t i = 0; i < fit->nr; i++)
		if (in[i] && !(solved[i] > 0))
			return false;
	return true;
}

double mp_fit(const struct mp_fit *fit, double *weights)
{
	bool in[MP_FIT_MAX] = {false}, barred[MP_FIT_MAX] = {false};
	double solved[MP_FIT_MAX] = {0}, gain = 0;

	memset(weights, 0, fit->nr * sizeof(*weights));
	for (int round = 0; round < ROUNDS; round++) {
		size_t next = best_outside(fit, in, barred, weights);

		if (next == fit->nr)
			break;
		in[next] = true;
		if (!solve(fit, in, solved)) {
			in[next] = false;
			barred[next] = true;
			continue;
		}
		for (int inner = 0; inner < ROUNDS && !all_above_zero(fit, in, solved); inner++) {
			step_back(fit, in, weights, solved);
			if (!solve(fit, in, solved))
				break;
		}
		if (!all_above_zero(fit, in, solved))
			break;
		memcpy(weights, solved, fit->nr * sizeof(*weights));
		/* A column that left at once would come again. */
		barred[next] |= !in[next];
	}
	for (size_t i = 0; i < fit->nr; i++)
		gain += weights[i] * fit->target[i];
	return gain;
}
