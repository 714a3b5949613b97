// SPDX-License-Identifier: Apache-2.0
/*
 * counts - the inferred block and edge counts of a whole module, for layout and reports.
 * Joins cfg, profile and infer.
 */
#ifndef MP_COUNTS_H
#define MP_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"
#include "libprof/infer/infer.h"
#include "libprof/infer/path_evidence.h"
#include "libprof/infer/profile.h"

/* Inferred counts of a whole module, in the order of cfg->blocks and cfg->edges. */
struct mp_counts {
	double *block, *edge;
	uint64_t *samples;	   /* witnesses per block, as in struct mp_profile */
	bool exact;		   /* counted, not inferred: certain */
	bool complete;		   /* all runs were counted: a block without a count did not run */
	bool unsampled;		   /* all counts come from transfers */
	double transfer_weight;	   /* transfers seen per execution, as in struct mp_flow */
	uint64_t *paths_over_edge; /* per edge: paths over it; NULL: no paths were used */
};

struct mp_counts_options {
	enum mp_estimator estimator;
	bool layout_prior;
	bool call_graph; /* a function is entered as often as its call sites run */
	/*
	 * Used by MP_ESTIMATE_PATHS, but not if there are transfers, which tell more; NULL:
	 * none.
	 */
	const struct mp_path_evidence *paths;
	unsigned int nr_threads; /* as for mp_parallel_for(); the counts do not depend on it */
};

struct mp_counts_stats {
	uint32_t nr_funcs;    /* inferred functions: those with samples, or with paths alone */
	uint32_t nr_gave_up;  /* among them: by length scaling instead (MP_INFER_GAVE_UP) */
	uint32_t nr_by_paths; /* among them: by paths as well */
	uint32_t largest;     /* blocks of the largest function */
};

/*
 * mp_counts_build - infers the counts of every function of @cfg that has samples, or paths
 * from polling; all other counts are 0. With an exact @profile the blocks' counts are those
 * counted, and only edges are inferred. If transfers were counted, too, and agree, nothing
 * is inferred.
 *
 * @options may be NULL: Poisson likelihood, with prior and call graph, without paths.
 * @stats may be NULL.
 * Return: 0, -ENOMEM, -EINVAL (@profile is of another cfg). Ownership:
 * mp_counts_fini(@out).
 */
int mp_counts_build(const struct mp_cfg *cfg, const struct mp_profile *profile,
		    const struct mp_counts_options *options, struct mp_counts *out,
		    struct mp_counts_stats *stats, struct mp_err *err);
void mp_counts_fini(struct mp_counts *counts);

/* True if flow may enter @block from outside its function, or leave the function there. */
bool mp_block_enters(const struct mp_block *block);
bool mp_block_leaves(const struct mp_cfg *cfg, const struct mp_block *block);

#endif
