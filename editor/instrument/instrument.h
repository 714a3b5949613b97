// SPDX-License-Identifier: Apache-2.0
/*
 * instrument - decides where counters stand, such that they determine the count of
 * every edge of a function. Called by optimize.
 *
 * Counted are the edges outside a spanning tree of the flow graph, in which the outside
 * is a vertex. It is a maximum spanning tree, so that counters stand where little runs
 * (Knuth and Stevenson, "Optimal measurement points for program frequency counts"; Ball
 * and Larus, "Optimally profiling and tracing programs"). A counter is a stub of the plan.
 */
#ifndef ME_INSTRUMENT_H
#define ME_INSTRUMENT_H

#include <stdint.h>

#include "editor/instrument/stubs.h"
#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/base/err.h"
#include "libprof/note/edge_place.h"

enum me_uncounted {
	ME_COUNTED,
	ME_UNCOUNTED_FLAGS,    /* its callers or callees pass arithmetic flags */
	ME_UNCOUNTED_OLD_CODE, /* control may stay in its old code */
	ME_UNCOUNTED_CYCLE,    /* edges that cannot be counted form a cycle */
	ME_NR_UNCOUNTED
};

struct me_instrument_report {
	uint32_t nr_funcs;			/* counted functions */
	uint32_t nr_uncounted[ME_NR_UNCOUNTED]; /* per reason, of the eligible functions */
	uint32_t nr_counters, nr_edges;
	uint32_t nr_inline;   /* stubs that control falls through; any other costs a jump */
	double counted, flow; /* by the profile: flow over counted edges, and over all */
};

struct me_instrument;

/*
 * me_instrument_new - find the functions with @movable[func] that can be counted. For
 * the others, clears @movable and sets @detail[func] to the reason.
 * Return: 0, -ENOMEM. Ownership: me_instrument_free(*@out), which takes NULL.
 */
int me_instrument_new(const struct mp_cfg *cfg, uint8_t *movable, const char **detail,
		      struct me_instrument **out, struct mp_err *err);
/*
 * me_instrument_plan - add the counters' stubs to @plan, and blocks that it lacks of
 * functions with @movable. Removes clones, and encodes the table of the counted edges into @added,
 * whose @counters says which kind of counters to use.
 * @counts: counts so far; NULL: loops are assumed to run.
 * Return: 0, -ENOMEM.
 */
int me_instrument_plan(struct me_instrument *instrument, const struct mp_counts *counts,
		       const uint8_t *movable, struct me_plan *plan,
		       struct me_instrumentation *added, struct me_instrument_report *report,
		       struct mp_err *err);
/*
 * me_instrument_stub - the stub that counts what @place names, as a version that counts all edges would have it: the
 * block that it stands before, and what it counts. Call it before me_instrument_plan().
 * Return: 0; -ENOENT: no block begins there, or no control goes this way; -EPERM: no stub may stand there; -ENOMEM.
 */
int me_instrument_stub(struct me_instrument *instrument, const struct mp_edge_place *place,
		       struct me_stub_to *out);
void me_instrument_free(struct me_instrument *instrument);

#endif
