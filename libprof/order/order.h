// SPDX-License-Identifier: Apache-2.0
/*
 * order - the order of functions in memory, chosen by the calls between them.
 *
 * Takes plain arrays and gives a permutation: knows neither files nor where the counts came from.
 * The editor orders its copies by it, and exports write it for linkers.
 */
#ifndef MP_ORDER_H
#define MP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum mp_order {
	MP_ORDER_ORIGINAL, /* as given */
	MP_ORDER_PH,	   /* "closest is best": Pettis and Hansen, PLDI 1990, section 4.1 */
	MP_ORDER_CDS,	   /* chains merged by a model of cache and TLB, like cdsort of LLVM BOLT;
			    * order_cds.c says where this differs */
	MP_NR_ORDERS
};

struct mp_order_func {
	uint64_t size; /* bytes; of the part that runs, where known */
	double weight; /* time spent in it: instructions executed, or samples */
};

/* Calls from one place to one function. Arcs may repeat; recursive arcs have no effect. */
struct mp_order_arc {
	uint32_t caller, callee; /* indexes of functions */
	uint64_t offset; /* of the call site from the caller's start; at most the caller's size counts */
	double weight; /* number of calls; an arc of 0 or less has no effect */
};

/*
 * mp_order_funcs - fill @out with a permutation of 0 .. @nr_funcs - 1; out[0] comes first in memory.
 * Functions without weight come last, in the given order, unless calls tie them to others. The
 * same input gives the same order on any machine.
 * Return: 0, -ENOMEM, -EINVAL (an arc names no function, no such algorithm, a weight that is no
 * finite number).
 */
int mp_order_funcs(enum mp_order algorithm, const struct mp_order_func *funcs, uint32_t nr_funcs,
		   const struct mp_order_arc *arcs, uint32_t nr_arcs, uint32_t *out);

/* "original", "ph", "cds"; NULL: no such order. */
const char *mp_order_name(enum mp_order algorithm);
/* Return: 0, -EINVAL: no such name. */
int mp_order_parse(const char *name, enum mp_order *out);

#endif
