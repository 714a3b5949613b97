// SPDX-License-Identifier: Apache-2.0
/*
 * compilations - which functions and loops does another compilation of the same source make
 * faster or slower?
 *
 * Both compilations have code markers. One run of each gives the markers' totals: exact numbers of
 * rounds. Then outputs without markers run in pairs, sampled. regions says which samples belong to
 * the same work, region_tests decides. Called by morph_audit.
 */
#ifndef ME_COMPILATIONS_H
#define ME_COMPILATIONS_H

#include "editor/audit/audit.h"
#include "editor/compilations/build.h"
#include "editor/compilations/region_tests.h"
#include "editor/compilations/regions.h"
#include "editor/optimize/optimize.h"

struct me_compilations {
	struct me_build builds[ME_NR_BUILDS];
	struct me_markers_report markers[ME_NR_BUILDS]; /* what was left out of the outputs */
	struct me_regions regions;
	struct me_region_tests tests; /* regions of one division, then of the next one */
	size_t nr_pairs, nr_runs;
	double seconds;
	bool differs;	      /* the new compilation does not behave as the old one */
	char difference[384]; /* in words */
};

/* Return: index of a region in @result->tests. */
static inline uint32_t me_compilations_index(const struct me_compilations *result, int division,
					     uint32_t region)
{
	return division == ME_DIVISION_FUNCTIONS
		       ? region
		       : result->regions.nr[ME_DIVISION_FUNCTIONS] + region;
}

/* Do the markers have the same total? */
static inline bool me_compilations_agree(const struct me_region_marker *marker)
{
	return marker->total[ME_OLD] == marker->total[ME_NEW];
}

/*
 * me_compilations_run - @opts: a is the old compilation, b the new one; no server, no library, no
 * metric but time. Return: 0; -ECANCELED after me_run_cancel(); -ENODATA: too few samples; -errno
 * with @err set. Ownership: me_compilations_fini(@out), after an error too.
 */
int me_compilations_run(const struct me_audit_opts *opts, struct me_compilations *out,
			struct mp_err *err);
void me_compilations_fini(struct me_compilations *result);

#endif
