// SPDX-License-Identifier: Apache-2.0
/*
 * order - orders functions: checks the input, lets order_ph or order_cds join functions to groups,
 * and puts the groups one behind the other, the most time per byte first. Called by the editor's
 * layout and by exports.
 */
#include "libprof/order/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/order/order_private.h"

static const char *const names[MP_NR_ORDERS] = {
	[MP_ORDER_ORIGINAL] = "original",
	[MP_ORDER_PH] = "ph",
	[MP_ORDER_CDS] = "cds",
};

const char *mp_order_name(enum mp_order algorithm)
{
	return (unsigned int)algorithm < MP_NR_ORDERS ? names[algorithm] : NULL;
}

int mp_order_parse(const char *name, enum mp_order *out)
{
	for (uint32_t i = 0; i < MP_NR_ORDERS; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum mp_order)i;
			return 0;
		}
	return -EINVAL;
}

struct rank {
	uint32_t group, first;
	double density;
};

static int rank_compare(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->density != y->density)
		return x->density > y->density ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int groups_rank(const struct order *o, uint32_t *out)
{
	struct rank *ranks = malloc(((size_t)o->nr_funcs + 1) * sizeof(*ranks));
	uint32_t nr = 0, nr_out = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t g = 0; g < o->nr_funcs; g++) {
		const struct order_group *group = &o->groups[g];
		double density = group->bytes ? group->weight / (double)group->bytes : 0;

		if (group->nr_funcs)
			ranks[nr++] = (struct rank){g, group->first, density};
	}
	qsort(ranks, nr, sizeof(*ranks), rank_compare);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t f = ranks[i].first; f != ORDER_NONE; f = o->next[f])
			out[nr_out++] = f;
	free(ranks);
	return 0;
}

/* Copies arcs of positive weight between two functions. Return: how many; UINT32_MAX: an arc is not valid. */
static uint32_t arcs_keep(const struct mp_order_arc *arcs, uint32_t nr_arcs, uint32_t nr_funcs,
			  struct mp_order_arc *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nr_arcs; i++) {
		if (arcs[i].caller >= nr_funcs || arcs[i].callee >= nr_funcs ||
		    !isfinite(arcs[i].weight))
			return UINT32_MAX;
		if (arcs[i].weight > 0 && arcs[i].caller != arcs[i].callee)
			out[nr++] = arcs[i];
	}
	return nr;
}

static int order_run(enum mp_order algorithm, struct order *o, uint32_t *out)
{
	int ret = 0;

	for (uint32_t f = 0; f < o->nr_funcs; f++) {
		o->group[f] = f;
		o->next[f] = ORDER_NONE;
		o->groups[f] = (struct order_group){f, f, 1, o->funcs[f].size, o->funcs[f].weight};
	}
	switch (algorithm) {
	case MP_ORDER_PH: ret = order_ph(o); break;
	case MP_ORDER_CDS: ret = order_cds(o); break;
	default: break;
	}
	return ret ? ret : groups_rank(o, out);
}

int mp_order_funcs(enum mp_order algorithm, const struct mp_order_func *funcs, uint32_t nr_funcs,
		   const struct mp_order_arc *arcs, uint32_t nr_arcs, uint32_t *out)
{
	struct mp_order_arc *kept = malloc(((size_t)nr_arcs + 1) * sizeof(*kept));
	struct order o = {.funcs = funcs, .arcs = kept, .nr_funcs = nr_funcs};
	int ret = -ENOMEM;

	o.groups = malloc(((size_t)nr_funcs + 1) * sizeof(*o.groups));
	o.group = malloc(((size_t)nr_funcs + 1) * sizeof(*o.group));
	o.next = malloc(((size_t)nr_funcs + 1) * sizeof(*o.next));
	if (!kept || !o.groups || !o.group || !o.next)
		goto out;
	ret = -EINVAL;
	o.nr_arcs = arcs_keep(arcs, nr_arcs, nr_funcs, kept);
	if (o.nr_arcs == UINT32_MAX || !mp_order_name(algorithm))
		goto out;
	for (uint32_t f = 0; f < nr_funcs; f++) {
		if (!isfinite(funcs[f].weight))
			goto out;
		out[f] = f;
	}
	ret = algorithm == MP_ORDER_ORIGINAL ? 0 : order_run(algorithm, &o, out);
out:
	free(kept);
	free(o.groups);
	free(o.group);
	free(o.next);
	return ret;
}
