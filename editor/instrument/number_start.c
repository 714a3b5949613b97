// SPDX-License-Identifier: Apache-2.0
/*
 * number_start - chooses the blocks where the register is set. Called by number_paths.
 */
#include <math.h>

#include "editor/instrument/number_private.h"

/*
 * The number of a block with only one path to it is known, and need not be in the register. It
 * can be set further on, where less code runs. The cost of that is summed up from the ends of
 * these trees.
 */
static void weigh_start(struct me_number *n, uint32_t v)
{
	struct me_number_vertex *at = &n->vertices[v];

	at->cost_if_set = at->cost_if_not_set = 0;
	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		const struct me_flow_edge *edge = &n->flow.edges[e];
		const struct me_number_vertex *to = &n->vertices[edge->to];
		bool passes_on = me_number_passes(n, edge);

		if (!n->edges[e].carries)
			continue;
		if (to->nr_in == 1 && !n->edges[e].closes) {
			double set = to->weight + to->cost_if_set;

			at->cost_if_set +=
				fmin(passes_on ? to->cost_if_set : set, to->cost_if_not_set);
			at->cost_if_not_set += fmin(set, to->cost_if_not_set);
			continue;
		}
		at->cost_if_set += passes_on ? 0 : n->edges[e].price;
		at->cost_if_not_set += me_number_has_place(n, edge) ? n->edges[e].price : HUGE_VAL;
	}
}

/* Set no number in @at. Its path still starts there, and again in the successors. */
static void do_not_set_number(struct me_number_vertex *at)
{
	at->reg = MP_NO_REGISTER;
	at->starts = true;
}

/* Going from the roots on, decide whether @v sets the register. */
static void place_start(struct me_number *n, uint32_t v)
{
	struct me_number_vertex *at = &n->vertices[v];
	bool was_set = at->reg != MP_NO_REGISTER;

	if (at->starts && was_set && at->cost_if_not_set < at->weight + at->cost_if_set)
		do_not_set_number(at);
	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		struct me_number_vertex *to = &n->vertices[n->flow.edges[e].to];
		bool is_child = to->nr_in == 1 && !n->edges[e].closes;

		if (!n->edges[e].carries)
			continue;
		if (at->reg == MP_NO_REGISTER) {
			n->edges[e].carries = false;
			if (is_child)
				to->starts = true;
		} else if (is_child &&
			   to->cost_if_not_set <
				   to->cost_if_set + (me_number_passes(n, &n->flow.edges[e])
							      ? 0
							      : to->weight)) {
			n->edges[e].carries = false;
			do_not_set_number(to);
		}
	}
}

void me_number_place_starts(struct me_number *n, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		weigh_start(n, n->order[i]);
	for (uint32_t i = nr; i-- > 0;)
		if (n->vertices[n->order[i]].nr_paths == 1)
			place_start(n, n->order[i]);
}
