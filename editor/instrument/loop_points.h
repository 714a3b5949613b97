// SPDX-License-Identifier: Apache-2.0
/*
 * loop_points - chooses timing points in loops of audited functions that are entered rarely (Lau
 * and others, CGO 2008, section 5), and says why a function has none. base/loops.c finds the loops,
 * loop_distance.c measures distances. Called by optimize.
 */
#ifndef ME_LOOP_POINTS_H
#define ME_LOOP_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/base/runtime.h"
#include "editor/evidence/flags/flags.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/*
 * Functions that are entered more often than 100 times a second have enough timings, by exact
 * counts. This definition is Morph's own: the paper compares the entry's count with those of other
 * blocks and gives no number. Counts tell no time, so a second is taken to be 1e9 instructions of
 * the file. That is an assumption: on a faster processor functions with more entries a second count
 * as rarely entered, too.
 */
#define ME_LOOP_ENTRIES_A_SECOND 100
#define ME_LOOP_INSNS_A_SECOND	 1e9
/*
 * Least instructions in a timing (minDist in the paper, which gives no number). Assumption. At run
 * time a window lasts at least 10 microseconds, which is the stricter rule. So the number decides
 * only which loops are preferred, and after how many rounds a stub calls the runtime: a smaller
 * number means more calls. scripts/bench/bench-timings checks that no two timings are closer
 * together.
 */
#define ME_LOOP_LEAST_DISTANCE 200
/*
 * A loop is preferred if it has more rounds than this per instruction of its function: the paper's
 * target frequency, for which the paper gives no number. Assumption: with 1e9 instructions a second
 * these are 1,000 rounds a second. A larger target passes over more outer loops, whose points cost
 * less.
 */
#define ME_LOOP_TARGET 1e-6
/*
 * The stubs of all points may take this share of the file's instructions, by the profile. Together
 * with ME_VERSIONS_COST that is 2 %, what audits may cost (results.md, "What audits inside programs
 * cost").
 */
#define ME_LOOP_COST 0.015

struct me_loop_point {
	uint32_t block;	   /* cfg block index */
	uint32_t rounds;   /* least rounds in a timing; at least 1 */
	uint32_t distance; /* least instructions in a round, in either version */
	double passes;	   /* by the profile */
};

/* The timing points of one audited function. */
struct me_loop_choice {
	uint32_t func;
	uint32_t nr_points;
	struct me_loop_point points[ME_AUDIT_MAX_POINTS];
	const char *why_none; /* NULL if @nr_points */
};

struct me_loop_points {
	struct me_loop_choice *list; /* one per audited function, ascending */
	uint32_t nr, nr_points;
	double cost; /* more instructions, by the profile; 0 without a profile */
};

/* The choices for the first functions, for the report. */
#define ME_LOOP_REPORT_FUNCS 64

struct me_loop_report {
	uint32_t nr_funcs; /* with timing points */
	uint32_t nr_points;
	double cost;
	struct me_loop_reported {
		char name[64];
		uint64_t vaddr;
		uint32_t nr_points;
		struct me_loop_reported_point {
			uint64_t vaddr; /* of the original */
			uint32_t rounds, distance;
		} points[ME_AUDIT_MAX_POINTS];
		const char *why_none; /* static; NULL if @nr_points */
	} list[ME_LOOP_REPORT_FUNCS];
	uint32_t nr_listed;
};

/*
 * me_loop_points_choose - @movable, @chosen: as for me_versions_choose(). @counts: NULL: no profile,
 * and functions that have loops count as entered rarely. @any_cost: costs do not count.
 * Return: 0, -ENOMEM, -EPERM. Ownership: me_loop_points_fini(@out).
 */
int me_loop_points_choose(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *chosen,
			  const struct me_plan *plan, const struct mp_counts *counts, bool any_cost,
			  struct me_loop_points *out, struct mp_err *err);
void me_loop_points_report(const struct mp_cfg *cfg, const struct me_loop_points *points,
			   struct me_loop_report *out);
void me_loop_points_fini(struct me_loop_points *points);

#endif
