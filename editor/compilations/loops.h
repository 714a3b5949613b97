// SPDX-License-Identifier: Apache-2.0
/*
 * loops - the loops of all functions, and how they are nested.
 *
 * A loop is a strongly connected set of blocks. Without the edges that lead from inside to its
 * headers, its inner loops remain (Steensgaard's nesting, which irreducible code has, too). Loops
 * that share a header are one loop. Called by regions.
 */
#ifndef ME_LOOPS_H
#define ME_LOOPS_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"

struct me_loop {
	uint32_t func;
	uint32_t parent; /* MP_NONE: an outermost loop; else less than its own index */
};

struct me_loops {
	struct me_loop *list;
	uint32_t nr;
	uint32_t *of_block; /* per block: innermost loop, or MP_NONE */
};

/* Return: 0, -ENOMEM. Ownership: me_loops_fini(@out), after an error too. */
int me_loops_find(const struct mp_cfg *cfg, struct me_loops *out);
void me_loops_fini(struct me_loops *loops);
/* Does @outer hold @inner, or is it the same? Both may be MP_NONE: the whole function. */
bool me_loop_holds(const struct me_loops *loops, uint32_t outer, uint32_t inner);

#endif
