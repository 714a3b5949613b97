// SPDX-License-Identifier: Apache-2.0
/*
 * order - the order of functions in memory, from who calls whom: four ways to choose it.
 *
 * Plain arrays in, a permutation out: knows neither files nor where the counts came from. The
 * editor orders its copies by it, reports export it for linkers.
 */
#ifndef MP_ORDER_H
#define MP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum mp_order {
	MP_ORDER_ORIGINAL, /* as given */
	MP_ORDER_PH,	   /* "closest is best": Pettis and Hansen, PLDI 1990, section 4.1 */
	MP_ORDER_C3,	   /* call-chain clustering: Ottoni and Maher, CGO 2017, section 4 */
	MP_ORDER_CDS, /* chains merged by a model of cache and TLB: as cdsort of LLVM BOLT does;
			    * order.c tells where this differs */
	MP_NR_ORDERS
};

struct mp_order_func {
	uint64_t size; /* bytes: of the part that runs, where that is known */
	double weight; /* time spent in it: instructions executed, or samples */
};

/* One or several calls from the same place; arcs may repeat, to oneself they do nothing. */
struct mp_order_arc {
	uint32_t caller, callee; /* indexes of functions */
	uint64_t offset; /* of the call site, from the caller's start; beyond its size: its end */
	double weight;	 /* how often; 0 and less: as if it were not there */
};

/*
 * mp_order_funcs - fill @out with a permutation of 0 .. @nr_funcs - 1: first of all lies out[0].
 * Functions of no weight come last, as given, but where calls tie them to others. The same
 * input gives the same order on any machine.
 * Return: 0, -ENOMEM, -EINVAL (an arc names no function, no such algorithm, a weight that is no
 * finite number).
 */
int mp_order_funcs(enum mp_order algorithm, const struct mp_order_func *funcs, uint32_t nr_funcs,
		   const struct mp_order_arc *arcs, uint32_t nr_arcs, uint32_t *out);

/* "original", "ph", "c3", "cds"; NULL: no such order. */
const char *mp_order_name(enum mp_order algorithm);
/* Return: 0, -EINVAL: no such name. */
int mp_order_parse(const char *name, enum mp_order *out);

#endif
