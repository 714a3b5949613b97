// SPDX-License-Identifier: Apache-2.0
/*
 * counts - the inferred block and edge counts of a whole module: what layout works from.
 *
 * Glue between libprof's cfg, profile and infer.
 */
#ifndef ME_COUNTS_H
#define ME_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/layout.h"
#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/infer.h"
#include "libprof/profile.h"

struct me_counts_options {
	enum mp_estimator estimator;
	bool layout_prior;
	bool call_graph; /* a function is entered as often as its call sites run */
};

struct me_counts_stats {
	uint32_t nr_funcs;   /* with samples: inferred */
	uint32_t nr_gave_up; /* of them: length scaling instead (MP_INFER_GAVE_UP) */
	uint32_t largest;    /* blocks of the largest */
};

/*
 * me_counts_build - infer the counts of every function of @cfg that has samples; all else is 0.
 * @options may be NULL: Poisson likelihood, with prior and call graph. @stats may be NULL.
 * Return: 0, -ENOMEM, -EINVAL (@profile is of another cfg). Ownership: me_counts_fini(@out).
 */
int me_counts_build(const struct mp_cfg *cfg, const struct mp_profile *profile,
		    const struct me_counts_options *options, struct me_counts *out,
		    struct me_counts_stats *stats, struct mp_err *err);
void me_counts_fini(struct me_counts *counts);

/* True where flow may come into @block from outside its function, or leave for outside. */
bool me_block_enters(const struct mp_block *block);
bool me_block_leaves(const struct mp_cfg *cfg, const struct mp_block *block);

#endif
