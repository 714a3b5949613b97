// SPDX-License-Identifier: Apache-2.0
/*
 * versions - chooses the functions that get two versions, and puts the versions into the plan:
 * A in the original's order, B in the order that layout chose, with the same stubs around both
 * (performance auditing: Lau and others, CGO 2008, section 2). Called by optimize.
 */
#ifndef ME_VERSIONS_H
#define ME_VERSIONS_H

#include <stdint.h>

#include "editor/instrument/loop_points.h"
#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/* Chosen are the functions with most samples, up to this many and up to this share of all. */
#define ME_VERSIONS_MAX	  32
#define ME_VERSIONS_SHARE 0.9
/* The stubs of all of them may take this share of the file's instructions, by the profile. */
#define ME_VERSIONS_COST 0.005

struct me_versions_request {
	/* Share of the file's samples, and of its instructions, per block; NULL: no profile, and
	 * every function is wanted. */
	const uint64_t *samples;
	uint64_t nr_samples;
	const struct mp_counts *counts;
	/* Per function: verify could not prove that its versions keep their tables; NULL: none. */
	const uint16_t *unproved;
	bool all; /* neither limits nor costs count */
};

/* Functions with most samples that were left out; the report keeps the first ones. */
#define ME_VERSIONS_LEFT_OUT 8

struct me_versions_left_out {
	char name[64];
	uint64_t vaddr, samples;
	const char *why;
};

struct me_versions_report {
	uint32_t nr_funcs;  /* with two versions */
	uint32_t nr_fixed;  /* whose two versions cannot be kept apart */
	uint32_t nr_costly; /* that are entered so often that the stubs would cost too much */
	double share;	    /* of the samples, in functions with two versions */
	double cost;	    /* more instructions, by the profile; 0 without a profile */
	struct me_versions_left_out left_out[ME_VERSIONS_LEFT_OUT];
	uint32_t nr_left_out;
};

/*
 * me_versions_choose - set @chosen[func] for functions with @movable[func] that get two versions,
 * and list in @report the first ones that do not, with the reason. At least one is chosen.
 * Return: 0, -ENODATA none can be chosen, -ENOMEM, -EPERM.
 */
int me_versions_choose(const struct mp_cfg *cfg, const uint8_t *movable, const struct me_plan *plan,
		       const struct me_versions_request *request, uint8_t *chosen,
		       struct me_versions_report *report, struct mp_err *err);
/*
 * me_versions_plan - add version A and the stubs of functions with @chosen to @plan and @added,
 * those at timing points as well, and blocks that @plan lacks of them. Removes their clones.
 * Return: 0, -ENOMEM.
 */
int me_versions_plan(const struct mp_cfg *cfg, const uint8_t *chosen,
		     const struct me_loop_points *points, struct me_plan *plan,
		     struct me_instrumentation *added, struct mp_err *err);

/* Does control leave the function at the end of the block, other than into a trap? */
bool me_versions_is_exit(const struct mp_block *block);

#endif
