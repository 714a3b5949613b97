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

/*
 * The functions with most samples are chosen, up to this many and up to this share of all samples.
 * Both are assumptions. Alpha is divided among the functions of a file, so more functions make each
 * verdict later; the functions behind the first 90 % of the samples have little time that could be
 * gained. In programs that were measured the stubs' cost ends the choice before these limits do
 * (results.md, "What audits inside programs cost": 4 to 27 functions, 4 to 57 % of the samples).
 */
#define ME_VERSIONS_MAX	  32
#define ME_VERSIONS_SHARE 0.9
/*
 * The stubs at entries and exits of all chosen functions may take this share of the file's
 * instructions, by the profile. Together with ME_LOOP_COST that is 2 %, what audits may cost
 * (results.md).
 */
#define ME_VERSIONS_COST 0.005
/*
 * After the verdicts one jump is left for each entry (place/audit_code.h), and these jumps may take
 * this share of the instructions, by the profile. The aim is 0.1 % at any work. The budget is a third
 * of that, so that work which enters these functions three times as often as the training did is
 * within the aim. Of six programs at other work than their training, the worst entered them 2.7
 * times as often (results.md, "What audits inside programs cost").
 */
#define ME_VERSIONS_DECIDED_COST (0.001 / 3)

struct me_versions_request {
	/*
	 * The file's samples per block, their sum, and its counts; they give shares of samples and
	 * of instructions. NULL: no profile, and every function is wanted.
	 */
	const uint64_t *samples;
	uint64_t nr_samples;
	const struct mp_counts *counts;
	/* Per function: verify could not prove that its versions keep their tables; NULL: none. */
	const uint16_t *unproved;
	bool all; /* neither limits nor costs count */
};

/*
 * The report lists this many functions that were left out, those with most samples first. Its text
 * names ME_VERSIONS_NAMED of them; with --explain, all.
 */
#define ME_VERSIONS_LEFT_OUT 64
#define ME_VERSIONS_NAMED    8

struct me_versions_left_out {
	char name[64];
	uint64_t vaddr, samples;
	const char *why;
	double cost; /* more instructions that its stubs would take; 0: they are not the reason */
};

struct me_versions_report {
	uint32_t nr_funcs;   /* with two versions */
	uint32_t nr_fixed;   /* whose two versions cannot be kept apart */
	uint32_t nr_costly;  /* that are entered so often that the stubs would cost too much */
	double share;	     /* of the samples, in functions with two versions */
	double share_costly; /* of the samples, in functions counted in @nr_costly */
	/* More instructions, by the profile: while audits go on, and after the verdicts; 0 without a
	 * profile. */
	double cost, decided_cost;
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
