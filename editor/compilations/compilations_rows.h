// SPDX-License-Identifier: Apache-2.0
/*
 * compilations_rows - the regions that a report shows, most time first, with their names and
 * times. Called by compilations_report and compilations_json.
 */
#ifndef ME_COMPILATIONS_ROWS_H
#define ME_COMPILATIONS_ROWS_H

#include "editor/compilations/compilations.h"

struct me_compilations_row {
	const struct me_region_test *result;
	uint32_t region;
	double share;		      /* of both compilations' time */
	double seconds[ME_NR_BUILDS]; /* of one run */
	/* The marker with the most rounds; MP_NONE: there is no marker with rounds. */
	uint32_t marker;
	double round_ns[ME_NR_BUILDS]; /* time of one of its rounds */
	uint32_t function;	       /* the one that gives its name; MP_NONE: none */
};

/*
 * me_compilations_rows - regions of @division that are tested, or that did other work and take as
 * much time as those. Return: 0, -ENOMEM. Ownership: free(*@out).
 */
int me_compilations_rows(const struct me_compilations *result, int division,
			 struct me_compilations_row **out, size_t *nr);
/* Seconds of user time that @samples stand for in one run. */
double me_compilations_seconds(const struct me_compilations *result, uint64_t samples);

#endif
