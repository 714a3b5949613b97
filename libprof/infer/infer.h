// SPDX-License-Identifier: Apache-2.0
/*
 * infer - turns noisy block samples into block and edge counts that obey flow conservation.
 * It works on one function at a time, on plain arrays. It needs no ELF file and no CFG, so
 * it can be tested alone.
 */
#ifndef MP_INFER_H
#define MP_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

enum mp_estimator {
	MP_ESTIMATE_POISSON, /* Poisson likelihood under flow conservation */
	/*
	 * length scaling alone (Morph, 1997, section 3.3); edges get shares by their
	 * targets' weights
	 */
	MP_ESTIMATE_SCALED,
	/* Poisson, then sampled paths where there are any (path_infer, not called here) */
	MP_ESTIMATE_PATHS,
};

struct mp_flow_block {
	double samples;
	uint32_t nr_insns;
	/* time of one execution as sampling sees it, in average instructions; 0: @nr_insns */
	double wait;
	bool entry;   /* flow may come from outside (function entry, landing pad, ...) */
	bool exit;    /* flow may leave (return, tail call, trap, noreturn) */
	bool unknown; /* having no samples is no evidence: the samples are of another build */
	/* Further evidence in @samples of how often the block ran: its weight, beside nr_insns. */
	double more_insns;
	/*
	 * Count from an earlier round, 0: none. It tells how long the block ran, and thus
	 * how far its samples can be trusted.
	 */
	double before;
	double reported; /* how often a polled program reported the block (path_infer) */
	/* Cost of each execution that comes from outside, in instructions; 0: free. */
	double entry_cost;
};

static inline double mp_flow_block_time(const struct mp_flow_block *block)
{
	return block->wait > 0 ? block->wait : block->nr_insns;
}

struct mp_flow_edge {
	uint32_t from, to;
	/*
	 * Blocks that share a jump table give their edges one group (the table's index);
	 * UINT32_MAX: none.
	 */
	uint32_t group;
	/* for the layout prior: a branch reaches it; the branch goes backward */
	bool taken, backward;
	bool hinted; /* use @against instead: the cost of its hint, in instructions */
	double against;
	/*
	 * Every passage of the edge is recorded: an edge without transfers was not passed.
	 * Fall-throughs leave no record.
	 */
	bool counted;
	double transfers; /* number seen, if @counted */
	double rate;	  /* of them per passage, if @counted; 0: the flow's transfer_weight */
};

struct mp_flow {
	const struct mp_flow_block *blocks;
	uint32_t nr_blocks;
	const struct mp_flow_edge *edges;
	uint32_t nr_edges;
	bool layout_prior; /* the original layout is weak evidence: taken branches cost */
	bool profiled;	   /* the layout was made by a profile: strong evidence */
	bool hinted;	   /* hints of branches instead of the layout */
	bool exact;	   /* samples are counted instructions: block counts are known */
	bool unsampled;	   /* no samples were taken: a block without samples is no evidence */
	/*
	 * Transfers seen per execution, in units of block counts; 0: there are no
	 * transfers, and counted edges are like others. Counted edges need no prior: their
	 * transfers are better evidence.
	 */
	double transfer_weight;
	/* Reports per execution of a block that a polled program reports; 0: no reports. */
	double reported_weight;
};

/*
 * mp_infer_flow() returns this when it stopped the search: the counts are those of
 * MP_ESTIMATE_SCALED. It guards against pathological input; no real function has reached
 * it.
 */
#define MP_INFER_GAVE_UP 1

/*
 * mp_infer_flow - fills @block_count and @edge_count (executions, in units of samples per
 * instruction; the caller's arrays). For every block: sum of in-edges (+ entry flow) =
 * count = sum of out-edges (+ exit flow), exactly up to rounding. MP_ESTIMATE_SCALED
 * promises no conservation: its block counts are samples / instructions.
 * Return: 0, MP_INFER_GAVE_UP, -ENOMEM, -EINVAL (an edge names no block, a negative
 * number).
 */
int mp_infer_flow(const struct mp_flow *flow, enum mp_estimator estimator, double *block_count,
		  double *edge_count, struct mp_err *err);

#endif
