// SPDX-License-Identifier: Apache-2.0
/*
 * instrument - where counters stand so that the count of every edge of a function follows.
 *
 * Counters stand on the edges outside of a spanning tree of the function's flow graph, in which the
 * outside is one more vertex; a maximum one, so that they stand where little runs (Knuth and
 * Stevenson, "Optimal measurement points for program frequency counts"; Ball and Larus, "Optimally
 * profiling and tracing programs"). Control comes by a counter as a stub of the plan.
 */
#ifndef ME_INSTRUMENT_H
#define ME_INSTRUMENT_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"
#include "libprof/counts.h"
#include "libprof/err.h"

enum me_uncounted {
	ME_COUNTED,
	ME_UNCOUNTED_FLAGS,   /* its callers or callees pass arithmetic flags */
	ME_UNCOUNTED_LINGERS, /* control may stay in its old code */
	ME_UNCOUNTED_CYCLE,   /* its counts would not follow from what can be counted */
	ME_NR_UNCOUNTED
};

struct me_instrument_report {
	uint32_t nr_funcs;			/* that are counted */
	uint32_t nr_uncounted[ME_NR_UNCOUNTED]; /* of the eligible ones */
	uint32_t nr_counters, nr_edges;
	uint32_t nr_inline;   /* stubs that control falls through; others cost a jump more */
	double counted, flow; /* by the profile: counts that are counted, of all edges' */
};

struct me_instrument;

/*
 * me_instrument_new - which of the functions with @movable[func] can be counted; of the others it
 * is cleared, and @detail[func] says why. Return: 0, -ENOMEM, -EPERM. Ownership: me_instrument_free(), which takes NULL.
 */
int me_instrument_new(const struct mp_cfg *cfg, uint8_t *movable, const char **detail,
		      struct me_instrument **out, struct mp_err *err);
/*
 * me_instrument_plan - puts the stubs into @plan, and what it lacks of the functions with @movable;
 * and what they count into its table. Clones are taken out.
 * @counts: what is known so far of where flow goes; NULL: loops are taken to run.
 * Return: 0, -ENOMEM.
 */
int me_instrument_plan(struct me_instrument *instrument, const struct mp_counts *counts,
		       const uint8_t *movable, struct me_plan *plan,
		       struct me_instrument_report *report, struct mp_err *err);
void me_instrument_free(struct me_instrument *instrument);

#endif
