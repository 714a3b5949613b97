// SPDX-License-Identifier: Apache-2.0
/*
 * loops - the loops of one function, as a tree. A loop is a strongly connected part of the flow
 * graph; its inner loops are those of the part without the blocks where control enters it
 * (Steensgaard 1993). So loops with several entries are found, too. Called by loop_points.
 */
#ifndef ME_LOOPS_H
#define ME_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

struct me_loop {
	uint32_t parent; /* MP_NONE: an outermost loop. Loops behind their parent */
	uint32_t header; /* cfg block: the first one where control enters the loop */
	uint32_t nr_insns, nr_blocks;
};

struct me_loops {
	struct me_loop *list;
	uint32_t nr;
	uint32_t *of_block; /* per block of the function: its innermost loop; MP_NONE: none */
};

/* me_loops_find - Return: 0, -ENOMEM. Ownership: me_loops_fini(@out). */
int me_loops_find(const struct mp_cfg *cfg, uint32_t func, struct me_loops *out);
void me_loops_fini(struct me_loops *loops);
/* Does the loop @outer contain @loop, or is it the same? */
bool me_loops_holds(const struct me_loops *loops, uint32_t outer, uint32_t loop);

#endif
