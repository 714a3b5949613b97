// SPDX-License-Identifier: Apache-2.0
/*
 * infer - from noisy block samples to block and edge counts that obey flow conservation.
 *
 * Works on one function at a time, on plain arrays: no ELF, no CFG needed, so it is tested alone.
 */
#ifndef MP_INFER_H
#define MP_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/err.h"

enum mp_estimator {
	MP_ESTIMATE_POISSON, /* Poisson likelihood under flow conservation */
	MP_ESTIMATE_SCALED,  /* length scaling alone (Morph, 1997, section 3.3); edges split evenly
				 * by the weights of the successors */
	MP_ESTIMATE_PATHS,   /* as Poisson; and where paths were sampled, by them (path_infer, which
				* is not called here) */
};

struct mp_flow_block {
	double samples;
	uint32_t nr_insns;
	double wait; /* what sampling sees of one execution, in average instructions; 0: @nr_insns */
	bool entry;  /* flow may come from outside (function entry, landing pad, ...) */
	bool exit;   /* flow may leave (return, tail call, trap, noreturn) */
	bool unknown;	   /* that it has no samples says nothing: they are another build's */
	double more_insns; /* beside nr_insns, where @samples holds further evidence of how
				 * often the block ran: the weight of that evidence */
	double before;	   /* what an earlier round made of it, in the units of counts: how long it
			    * ran, and so how well that tells how often; 0: there was none */
	double told;	   /* how often the program said, when asked, that it runs (path_infer) */
	double entry_cost; /* of each execution that comes from outside, in the units of a
				 * block's cost (instructions); 0: free */
};

static inline double mp_flow_block_time(const struct mp_flow_block *block)
{
	return block->wait > 0 ? block->wait : block->nr_insns;
}

struct mp_flow_edge {
	uint32_t from, to;
	uint32_t group;	      /* edges of blocks that share a jump table carry the same group
				 * (table index); UINT32_MAX: none. */
	bool taken, backward; /* for the layout prior: reached by a branch; that goes backward */
	bool hinted; /* instead: @against, what its looks say against it, in instructions */
	double against;
	bool counted;	  /* passing it leaves a trace: a transfer of control that is not seen
			       * here was seen nowhere. A fall-through leaves none. */
	double transfers; /* seen over it, where @counted */
};

struct mp_flow {
	const struct mp_flow_block *blocks;
	uint32_t nr_blocks;
	const struct mp_flow_edge *edges;
	uint32_t nr_edges;
	bool layout_prior; /* original layout as weak evidence: branches taken cost */
	bool profiled;	   /* that layout was made by a profile: strong evidence */
	bool hinted;	   /* the looks of branches instead of the layout */
	bool exact;	   /* samples are counted instructions: a block's count is known */
	bool unsampled;	   /* nobody sampled: a block without samples says nothing */
	/* Transfers seen for each execution in units of block counts, where there is evidence by
	 * edges; 0: there is none, and counted edges are like others. The prior is not needed
	 * then: what a counted edge carries, its transfers say. */
	double transfer_weight;
	/* For each execution of a block that is told of, how often it is; 0: none is. */
	double told_weight;
};

/* What mp_infer_flow() returns when it gave up looking for the best: the counts are those of
 * MP_ESTIMATE_SCALED. A guard against pathological input; no real function has met it. */
#define MP_INFER_GAVE_UP 1

/*
 * mp_infer_flow - fill @block_count and @edge_count (executions, in units of samples per
 * instruction; caller's arrays). For every block: sum of in-edges (+ entry flow) = count = sum of
 * out-edges (+ exit flow), exactly up to rounding.
 * MP_ESTIMATE_SCALED promises no conservation: its block counts are samples / instructions.
 * Return: 0, MP_INFER_GAVE_UP, -ENOMEM, -EINVAL (an edge names no block, a negative number).
 */
int mp_infer_flow(const struct mp_flow *flow, enum mp_estimator estimator, double *block_count,
		  double *edge_count, struct mp_err *err);

#endif
