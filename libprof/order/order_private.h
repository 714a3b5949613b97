// SPDX-License-Identifier: Apache-2.0
/*
 * order_private - what the algorithms for orders share. Only order*.c include this header.
 *
 * Each algorithm joins functions to groups; order.c then sorts the groups by density.
 */
#ifndef MP_ORDER_PRIVATE_H
#define MP_ORDER_PRIVATE_H

#include "libprof/order/order.h"

#define ORDER_NONE UINT32_MAX

struct order_group {
	uint32_t first, last, nr_funcs; /* nr_funcs is 0 once joined to another group */
	uint64_t bytes;
	double weight;
};

struct order {
	const struct mp_order_func *funcs;
	const struct mp_order_arc *arcs; /* valid, of weight > 0, not recursive */
	uint32_t nr_funcs, nr_arcs;
	struct order_group *groups; /* one for each function at first */
	uint32_t *group;	    /* per function */
	uint32_t *next;		    /* per function: the one behind it in its group */
};

/* Appends group @b to group @a. */
void order_join(struct order *o, uint32_t a, uint32_t b);

/* Each joins groups as its algorithm says. Return: 0, -ENOMEM. */
int order_ph(struct order *o);
int order_cds(struct order *o);

#endif
