// SPDX-License-Identifier: Apache-2.0
/*
 * predict - computes the branches and instructions that run before and after a plan, by exact or
 * inferred counts.
 *
 * me_layout_predict() (layout.h) does this with doubted counts (libprof/infer/counts_doubt.h).
 */
#ifndef ME_PREDICT_H
#define ME_PREDICT_H

#include "editor/layout/layout.h"
#include "editor/plan.h"

/* In units of counts. Taken: conditional branches taken and direct jumps, inside functions. */
struct me_branches {
	double taken_before, taken_after;
	double insns_before, insns_after;
	double insns_moved; /* of insns_before, in blocks that the plan copies */
};

/*
 * me_branches_count - counts branches and instructions of the functions with @funcs[f]; @funcs
 * NULL: of all that @plan copies.
 * Return: 0, -ENOMEM, -EINVAL (the plan names no block).
 */
int me_branches_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, const uint8_t *funcs, struct me_branches *out);

/* me_branches_count() for one function; adds to @sum. @next (MP_NONE: nothing follows) and
 * @copied are per block. */
void me_branches_add(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
		     const uint32_t *next, const uint8_t *copied, struct me_branches *sum);

/* me_way_count - how often control goes from block @from to block @to, by all edges between them. */
double me_way_count(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t from,
		    uint32_t to);

/*
 * me_layout_savings - expected number of taken branches that @plan saves in each function, in
 * units of counts, by the same doubted counts as the prediction.
 * @saved: one per cfg function.
 * Return: 0, -ENOMEM, -EINVAL.
 */
int me_layout_savings(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, double *saved);

#endif
