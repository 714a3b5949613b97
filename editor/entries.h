// SPDX-License-Identifier: Apache-2.0
/*
 * entries - how often control would arrive at old addresses of a function that has been copied, and
 * which functions are better left alone for it.
 *
 * A direct call or jump is led to the copy and costs what it did. A pointer that keeps the old
 * address, or a table that does, leads to old code, where a patch jumps on: one taken branch more.
 */
#ifndef ME_ENTRIES_H
#define ME_ENTRIES_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"
#include "libprof/counts.h"
#include "libprof/err.h"

#define ME_WHY_ENTRIES "entered by pointers more often than its copy would save branches"

struct me_entries {
	double *arrivals; /* per function, in units of counts: those at old addresses, if it moves */
	uint8_t *left;	  /* per function: me_entries_weigh() took it out of the plan */
};

/*
 * me_entries_count - @redirected: one byte per function, all pointers to it will hold the copy's
 * address; @labels: so will all labels of it that are values (as struct me_pointers has them; NULL: of
 * none).
 * Return: 0, -ENOMEM. Ownership: me_entries_fini(@out).
 */
int me_entries_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const uint8_t *redirected, const uint8_t *labels, struct me_entries *out,
		     struct mp_err *err);
void me_entries_fini(struct me_entries *entries);

/*
 * me_entries_weigh - take the functions out of @plan whose arrivals cost more taken branches than
 * their copies can be relied on to save, and mark them in @entries.
 * Return: 0, -ENOMEM.
 */
int me_entries_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     struct me_entries *entries, struct me_plan *plan, struct mp_err *err);

#endif
