// SPDX-License-Identifier: Apache-2.0
/*
 * counts - the inferred block and edge counts of a whole module: what layout works from, and what
 * reports show.
 *
 * Glue between cfg, profile and infer.
 */
#ifndef MP_COUNTS_H
#define MP_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/infer.h"
#include "libprof/path_evidence.h"
#include "libprof/profile.h"

/* Inferred counts of a whole module, in the order of cfg->blocks and cfg->edges. */
struct mp_counts {
	double *block, *edge;
	uint64_t *samples;	/* witnesses per block, as in struct mp_profile */
	bool exact;		/* counted, not inferred: no doubt about any of it */
	bool complete;		/* and of all that ran: a block without a count did not run */
	bool unsampled;		/* all of it from transfers */
	double transfer_weight; /* transfers seen for each execution, as in struct mp_flow */
	uint64_t *followed;	/* per edge: paths over it, where they were used; NULL: none were */
};

struct mp_counts_options {
	enum mp_estimator estimator;
	bool layout_prior;
	bool call_graph; /* a function is entered as often as its call sites run */
	/* Used by MP_ESTIMATE_PATHS, and where there are transfers, which say more, not; NULL: none. */
	const struct mp_path_evidence *paths;
	unsigned int nr_threads; /* as mp_parallel_for() takes it; the counts do not depend on it */
};

struct mp_counts_stats {
	uint32_t nr_funcs;    /* with samples, or paths alone: inferred */
	uint32_t nr_gave_up;  /* of them: length scaling instead (MP_INFER_GAVE_UP) */
	uint32_t nr_by_paths; /* of them: by paths as well */
	uint32_t largest;     /* blocks of the largest */
};

/*
 * mp_counts_build - infer the counts of every function of @cfg that has samples, or that paths come by
 * which a program was asked for; all else is 0. Of an exact @profile blocks run as often as was
 * counted, and only edges are inferred: not even these where transfers were counted, too, and agree.
 * @options may be NULL: Poisson likelihood, with prior and call graph, without paths. @stats may be NULL.
 * Return: 0, -ENOMEM, -EINVAL (@profile is of another cfg). Ownership: mp_counts_fini(@out).
 */
int mp_counts_build(const struct mp_cfg *cfg, const struct mp_profile *profile,
		    const struct mp_counts_options *options, struct mp_counts *out,
		    struct mp_counts_stats *stats, struct mp_err *err);
void mp_counts_fini(struct mp_counts *counts);

/* True where flow may come into @block from outside its function, or leave for outside. */
bool mp_block_enters(const struct mp_block *block);
bool mp_block_leaves(const struct mp_cfg *cfg, const struct mp_block *block);

#endif
