// SPDX-License-Identifier: Apache-2.0
/*
 * export_callcost - what calls cost with all they caused, estimated from samples and call counts.
 */
#ifndef MD_EXPORT_CALLCOST_H
#define MD_EXPORT_CALLCOST_H

#include "daemon/export.h"

struct md_callcost {
	const struct md_export_module *m;
	struct md_export_call *calls; /* that happen, ascending caller and address */
	size_t nr_calls;
	double *total;	 /* per cycle: samples in it and below it */
	double *entered; /* per cycle: calls into it from outside, known or not */
	uint32_t *cycle; /* per function: the cycle of the call graph that it is in */
	uint32_t nr_cycles;
};

/*
 * @samples: per function. Functions that call each other are taken together: such a cycle's
 * samples, and those of what it calls, are shared out over the calls into it by how often they
 * happen. Calls within a cycle cost nothing beside. Return: 0, -ENOMEM. Ownership: md_callcost_fini(), also after an error.
 */
int md_callcost_init(struct md_callcost *cost, const struct md_export_module *m,
		     const uint64_t *samples);
void md_callcost_fini(struct md_callcost *cost);

/* Samples that the call caused. */
uint64_t md_callcost_of(const struct md_callcost *cost, const struct md_export_call *call);

#endif
