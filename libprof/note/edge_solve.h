// SPDX-License-Identifier: Apache-2.0
/*
 * edge_solve - computes all counts of edges and blocks from the counters of some edges.
 *
 * Flow into a block equals flow out of it, and the edges without a counter form no cycle;
 * all edges that lead outside end at one vertex. A block with one unknown edge gives the
 * count of that edge, and so on (Knuth and Stevenson 1973, Ball and Larus 1994). longjmp,
 * exceptions and exit leave blocks in their middle, and threads lose counts that are not
 * atomic. Flow is then unequal; the difference is reported, not hidden.
 */
#ifndef MP_EDGE_SOLVE_H
#define MP_EDGE_SOLVE_H

#include <stdint.h>

#include "libprof/note/edge_table.h"
#include "libprof/base/err.h"

struct mp_edge_discrepancy {
	uint32_t nr_ran; /* functions with a counter that is not 0 */
	/* among them: functions with a block whose flow in differs from its flow out */
	uint32_t nr_unequal;
	/*
	 * Sum of the spare counters, and of their differences from the counts that the
	 * others give.
	 */
	uint64_t spare, missed;
	/* Sum of the negative counts that became 0, and of all edges' counts. */
	uint64_t negative, total;
};

struct mp_edge_counts {
	uint64_t *edge;	 /* per edge of @table->edges: how often it was taken */
	uint64_t *block; /* per block of @table->blocks: how often it was entered */
	struct mp_edge_discrepancy discrepancy;
};

/*
 * mp_edge_solve - @counters: @table->nr_counters of them. Linear time.
 * Return: 0, -ENOMEM, -EBADMSG (edges without a counter form a cycle).
 * Ownership: mp_edge_counts_fini(@out), which takes zeros.
 */
int mp_edge_solve(const struct mp_edge_table *table, const uint64_t *counters,
		  struct mp_edge_counts *out, struct mp_err *err);
void mp_edge_counts_fini(struct mp_edge_counts *counts);

#endif
