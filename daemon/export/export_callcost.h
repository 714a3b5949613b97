// SPDX-License-Identifier: Apache-2.0
/*
 * export_callcost - estimates the inclusive cost of calls from samples and call counts. Called
 * by export_callgrind.
 */
#ifndef MD_EXPORT_CALLCOST_H
#define MD_EXPORT_CALLCOST_H

#include "daemon/export/export.h"

struct md_callcost {
	const struct md_export_module *m;
	struct md_export_call *calls; /* calls with a count, ascending by caller and address */
	size_t nr_calls;
	double *total;	 /* per cycle: samples in it and in its callees */
	double *entered; /* per cycle: calls from outside, including unknown callers */
	uint32_t *cycle; /* per function: its cycle in the call graph */
	uint32_t nr_cycles;
};

/*
 * @samples: per function. Functions that call each other form a cycle. The samples of a cycle
 * and its callees are divided among the calls into the cycle, in proportion to their counts.
 * Calls within a cycle cost nothing extra. Return: 0, -ENOMEM. Ownership: md_callcost_fini(),
 * also after an error.
 */
int md_callcost_init(struct md_callcost *cost, const struct md_export_module *m,
		     const uint64_t *samples);
void md_callcost_fini(struct md_callcost *cost);

/* Return: samples in the callee and its callees that are charged to @call. */
uint64_t md_callcost_of(const struct md_callcost *cost, const struct md_export_call *call);

#endif
