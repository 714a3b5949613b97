// SPDX-License-Identifier: Apache-2.0
/*
 * alternatives - the ways in which one function is laid out in one round. Called by refine.
 *
 *	level 0	as it is
 *	1, 2	the next two ways that were not tried yet
 *	3	left where the original has it, which undoes whatever the layout did to it
 */
#ifndef ME_ALTERNATIVES_H
#define ME_ALTERNATIVES_H

#include "editor/refine/design.h"
#include "editor/refine/wishes.h"

struct me_levels {
	struct me_adjust wish[ME_DESIGN_LEVELS]; /* [0] is not used */
};

/* A level for which no untried way is left does not move the function. */
struct me_levels me_alternatives(uint64_t vaddr, const struct me_wishes *tried);

#endif
