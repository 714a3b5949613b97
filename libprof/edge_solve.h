// SPDX-License-Identifier: Apache-2.0
/*
 * edge_solve - all counts of edges and blocks out of the counters of some edges.
 *
 * In each function as much goes into a block as out of it, and the edges without a counter form no
 * circle (one end of all that lead outside is the same vertex). So a block with one such edge says
 * how often that was taken, and then there is one less (Knuth and Stevenson 1973, Ball and Larus
 * 1994). longjmp, exceptions and exit leave blocks in their middle, and threads lose counts that
 * are not atomic: then that is not so, and by how much is reported, not hidden.
 */
#ifndef MP_EDGE_SOLVE_H
#define MP_EDGE_SOLVE_H

#include <stdint.h>

#include "libprof/edge_table.h"
#include "libprof/err.h"

struct mp_edge_discrepancy {
	uint32_t nr_ran;     /* functions with a counter that is not 0 */
	uint32_t nr_unequal; /* among them: into some block goes not what comes out of it */
	/* What spare counters counted, and the sum of how far off it is what follows from others. */
	uint64_t spare, missed;
	/* Sum of what would have been negative counts and is 0, and of the counts of all edges. */
	uint64_t negative, total;
};

struct mp_edge_counts {
	uint64_t *edge;	 /* of @table->edges: how often it was taken */
	uint64_t *block; /* of @table->blocks: how often it was entered */
	struct mp_edge_discrepancy discrepancy;
};

/*
 * mp_edge_solve - @counters: @table->nr_counters of them. Linear time.
 * Return: 0, -ENOMEM, -EBADMSG edges without a counter form a circle. Ownership:
 * mp_edge_counts_fini(@out), which takes zeros.
 */
int mp_edge_solve(const struct mp_edge_table *table, const uint64_t *counters,
		  struct mp_edge_counts *out, struct mp_err *err);
void mp_edge_counts_fini(struct mp_edge_counts *counts);

#endif
