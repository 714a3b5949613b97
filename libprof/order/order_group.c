// SPDX-License-Identifier: Apache-2.0
/* order_group - joins two groups of functions. */
#include "libprof/order/order_private.h"

void order_join(struct order *o, uint32_t a, uint32_t b)
{
	struct order_group *x = &o->groups[a], *y = &o->groups[b];

	for (uint32_t f = y->first; f != ORDER_NONE; f = o->next[f])
		o->group[f] = a;
	o->next[x->last] = y->first;
	x->last = y->last;
	x->nr_funcs += y->nr_funcs;
	x->bytes += y->bytes;
	x->weight += y->weight;
	y->nr_funcs = 0;
}
