// SPDX-License-Identifier: Apache-2.0
/*
 * order_c3 - call-chain clustering, Ottoni and Maher (CGO 2017, section 4): functions from the
 * hottest down, each behind the group of its likeliest caller, so that a call runs forwards and
 * as short as can be. Groups stop growing at a page. Called by order.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/order_private.h"

#define MAX_GROUP_BYTES 4096

struct heat {
	double weight;
	uint32_t func;
};

static int heat_compare(const void *a, const void *b)
{
	const struct heat *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->func > y->func) - (x->func < y->func);
}

static int arc_compare(const void *a, const void *b)
{
	const struct mp_order_arc *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return (x->caller > y->caller) - (x->caller < y->caller);
}

/* caller[f]: who calls f most, over all call sites; ORDER_NONE: nobody. */
static int callers_find(const struct order *o, uint32_t *caller)
{
	struct mp_order_arc *arcs = malloc(((size_t)o->nr_arcs + 1) * sizeof(*arcs));
	double best = 0;

	if (!arcs)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->nr_arcs; i++)
		arcs[i] = o->arcs[i];
	qsort(arcs, o->nr_arcs, sizeof(*arcs), arc_compare);
	for (uint32_t f = 0; f < o->nr_funcs; f++)
		caller[f] = ORDER_NONE;
	for (uint32_t i = 0; i < o->nr_arcs;) {
		uint32_t from = arcs[i].caller, to = arcs[i].callee;
		double sum = 0;

		for (; i < o->nr_arcs && arcs[i].caller == from && arcs[i].callee == to; i++)
			sum += arcs[i].weight;
		if (caller[to] == ORDER_NONE || sum > best) {
			caller[to] = from;
			best = sum;
		}
	}
	free(arcs);
	return 0;
}

int order_c3(struct order *o)
{
	struct heat *by_heat = malloc(((size_t)o->nr_funcs + 1) * sizeof(*by_heat));
	uint32_t *caller = malloc(((size_t)o->nr_funcs + 1) * sizeof(*caller));
	int ret = by_heat && caller ? callers_find(o, caller) : -ENOMEM;

	for (uint32_t f = 0; f < o->nr_funcs && !ret; f++)
		by_heat[f] = (struct heat){o->funcs[f].weight, f};
	if (!ret)
		qsort(by_heat, o->nr_funcs, sizeof(*by_heat), heat_compare);
	for (uint32_t i = 0; i < o->nr_funcs && !ret; i++) {
		uint32_t f = by_heat[i].func, a, b = o->group[f];

		if (caller[f] == ORDER_NONE)
			continue;
		a = o->group[caller[f]];
		if (a != b && o->groups[a].bytes + o->groups[b].bytes <= MAX_GROUP_BYTES)
			order_join(o, a, b);
	}
	free(by_heat);
	free(caller);
	return ret;
}
