// SPDX-License-Identifier: Apache-2.0
/*
 * design - which levels each factor has in each row of a fractional factorial experiment.
 *
 * The array OA(16, 4^5) of Bose and Bush (Annals of Mathematical Statistics 23, 1952): 16 rows, up
 * to five factors of four levels, and any two factors meet in each pair of levels exactly once. So
 * the mean over the four rows of a level shows that level's effect: the other factors have the same
 * effect on the means of all levels. Called by screen; knows nothing of programs.
 */
#ifndef ME_DESIGN_H
#define ME_DESIGN_H

#include <stddef.h>
#include <stdint.h>

enum {
	ME_DESIGN_ROWS = 16,
	ME_DESIGN_FACTORS = 5,
	ME_DESIGN_LEVELS = 4
};

/* Level of @factor in @row. */
unsigned int me_design_level(unsigned int row, unsigned int factor);

/* The mean of a value over the rows of one level, and the standard error of that mean. */
struct me_design_effect {
	double mean, error;
};

/*
 * me_design_effects - the effect of each level of @factor. Errors come from how rows of one level
 * differ, all levels taken together.
 */
void me_design_effects(const double values[ME_DESIGN_ROWS], unsigned int factor,
		       struct me_design_effect effects[ME_DESIGN_LEVELS]);

/*
 * me_design_choose - the best level of @factor. @own: the function's samples in each row; @whole:
 * all samples. A level is judged by the function's own samples; where the samples of all other
 * functions differ by more than three standard errors, the level has an effect elsewhere, and all
 * samples decide.
 */
unsigned int me_design_choose(const double own[ME_DESIGN_ROWS], const double whole[ME_DESIGN_ROWS],
			      unsigned int factor);

#endif
