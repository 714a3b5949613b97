// SPDX-License-Identifier: Apache-2.0
/*
 * order_private - what the ways to order functions share; nobody but order*.c includes it.
 *
 * All of them join functions to groups and end with the groups by density, densest first.
 */
#ifndef MP_ORDER_PRIVATE_H
#define MP_ORDER_PRIVATE_H

#include "libprof/order.h"

#define ORDER_NONE UINT32_MAX

struct order_group {
	uint32_t first, last, nr_funcs; /* no functions: it was joined to another */
	uint64_t bytes;
	double weight;
};

struct order {
	const struct mp_order_func *funcs;
	const struct mp_order_arc *arcs; /* all valid, of weight > 0, no recursion */
	uint32_t nr_funcs, nr_arcs;
	struct order_group *groups; /* at first one for each function */
	uint32_t *group;	    /* per function */
	uint32_t *next;		    /* per function: behind it in its group */
};

/* Group @b behind group @a. */
void order_join(struct order *o, uint32_t a, uint32_t b);

/* Each joins groups. Return: 0, -ENOMEM. */
int order_ph(struct order *o);
int order_c3(struct order *o);
int order_cds(struct order *o);

#endif
