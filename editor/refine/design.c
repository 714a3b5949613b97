// SPDX-License-Identifier: Apache-2.0
/* design - an orthogonal array and its effects; see design.h. */
#include "editor/refine/design.h"

#include <math.h>

enum {
	ROWS_OF_A_LEVEL = ME_DESIGN_ROWS / ME_DESIGN_LEVELS
};

/* The product in the field of four elements 0, 1, w, w + 1. Addition there is exclusive or. */
static unsigned int product(unsigned int a, unsigned int b)
{
	static const uint8_t products[4][4] = {
		{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}};

	return products[a][b];
}

unsigned int me_design_level(unsigned int row, unsigned int factor)
{
	unsigned int x = row / 4, y = row % 4;

	return factor ? x ^ product(factor - 1, y) : y;
}

void me_design_effects(const double values[ME_DESIGN_ROWS], unsigned int factor,
		       struct me_design_effect effects[ME_DESIGN_LEVELS])
{
	double squares = 0;

	for (unsigned int level = 0; level < ME_DESIGN_LEVELS; level++)
		effects[level] = (struct me_design_effect){0};
	for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++)
		effects[me_design_level(row, factor)].mean += values[row] / ROWS_OF_A_LEVEL;
	for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++) {
		double d = values[row] - effects[me_design_level(row, factor)].mean;

		squares += d * d;
	}
	for (unsigned int level = 0; level < ME_DESIGN_LEVELS; level++)
		effects[level].error =
			sqrt(squares / (ME_DESIGN_ROWS - ME_DESIGN_LEVELS) / ROWS_OF_A_LEVEL);
}

unsigned int me_design_choose(const double own[ME_DESIGN_ROWS], const double whole[ME_DESIGN_ROWS],
			      unsigned int factor)
{
	struct me_design_effect mine[ME_DESIGN_LEVELS], all[ME_DESIGN_LEVELS];
	double rest[ME_DESIGN_ROWS], best = 0;
	struct me_design_effect elsewhere[ME_DESIGN_LEVELS];
	unsigned int chosen = 0;

	for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++)
		rest[row] = whole[row] - own[row];
	me_design_effects(own, factor, mine);
	me_design_effects(whole, factor, all);
	me_design_effects(rest, factor, elsewhere);
	for (unsigned int level = 0; level < ME_DESIGN_LEVELS; level++) {
		double other = elsewhere[level].mean - elsewhere[0].mean;
		double effect = mine[level].mean - mine[0].mean;

		/* The difference of two means has twice the variance of one. */
		if (fabs(other) > 3 * M_SQRT2 * elsewhere[level].error)
			effect = all[level].mean - all[0].mean;
		if (effect < best) {
			best = effect;
			chosen = level;
		}
	}
	return chosen;
}
