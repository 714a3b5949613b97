// SPDX-License-Identifier: Apache-2.0
/* file_loops - the loops of all functions of a file (editor/base/loops). Called by regions. */
#ifndef ME_FILE_LOOPS_H
#define ME_FILE_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

struct me_file_loop {
	uint32_t func;
	uint32_t parent; /* MP_NONE: an outermost loop; else less than its own index */
};

struct me_file_loops {
	struct me_file_loop *list;
	uint32_t nr;
	uint32_t *of_block; /* per block: innermost loop, or MP_NONE */
};

/* Return: 0, -ENOMEM. Ownership: me_file_loops_fini(@out), after an error too. */
int me_file_loops_find(const struct mp_cfg *cfg, struct me_file_loops *out);
void me_file_loops_fini(struct me_file_loops *loops);
/* Does @outer hold @inner, or is it the same? Both may be MP_NONE: the whole function. */
bool me_file_loop_holds(const struct me_file_loops *loops, uint32_t outer, uint32_t inner);

#endif
