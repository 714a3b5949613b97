// SPDX-License-Identifier: Apache-2.0
/*
 * screen - tries several functions in four ways each, all at once, by the rows of a design. Called by
 * refine.
 */
#ifndef ME_SCREEN_H
#define ME_SCREEN_H

#include "editor/refine/alternatives.h"
#include "editor/refine/refine.h"

struct me_screen {
	const struct me_refine_options *options;
	const char *version;		/* level 0 of all */
	const struct me_wishes *wishes; /* its adjustments */
	uint32_t funcs[ME_DESIGN_FACTORS];
	struct me_levels levels[ME_DESIGN_FACTORS];
	size_t nr; /* of functions */
	/* results */
	double own[ME_DESIGN_FACTORS][ME_DESIGN_ROWS], whole[ME_DESIGN_ROWS];
	unsigned int chosen[ME_DESIGN_FACTORS];
};

/* A reproducible permutation of @nr numbers: the order of runs. */
void me_screen_shuffle(uint64_t *state, unsigned int *order, unsigned int nr);
/*
 * me_screen_run - makes the version of each row and samples it once, in random order, and chooses
 * the best way of each function. Return: 0, or as the runner.
 */
int me_screen_run(struct me_screen *screen, uint64_t *state, struct mp_err *err);

#endif
