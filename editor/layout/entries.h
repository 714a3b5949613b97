// SPDX-License-Identifier: Apache-2.0
/*
 * entries - how often control would arrive at old addresses of a copied function, and for which
 * functions that costs more than the copy saves.
 *
 * A direct call or jump is changed to lead to the copy, and costs as much as before. A pointer or
 * table that keeps an old address leads to old code, where a patch jumps to the copy: one more
 * taken branch.
 */
#ifndef ME_ENTRIES_H
#define ME_ENTRIES_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/callgraph/entry_samples.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

struct mp_counts;

#define ME_WHY_ENTRIES "jumps from its old address would cost more branches than its copy saves"

struct me_entries {
	double *arrivals; /* per function, in units of counts: at old addresses if it is copied */
	uint8_t *dropped; /* per function: me_entries_drop_costly() removed it from the plan */
};

/*
 * me_entries_count - count the arrivals. @redirected: one byte per function, set if all
 * pointers to it will hold the copy's address. @labels: the same for labels whose
 * addresses are used as values (see struct me_redirects); NULL: for none. @samples: how functions were
 * entered; NULL: not known.
 * Return: 0, -ENOMEM. Ownership: me_entries_fini(@out).
 */
int me_entries_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const struct mp_entry_samples *samples, const uint8_t *redirected,
		     const uint8_t *labels, struct me_entries *out, struct mp_err *err);
void me_entries_fini(struct me_entries *entries);

/*
 * me_entries_drop_costly - remove from @plan, and mark in @entries, the functions whose
 * arrivals cost more taken branches than their copies can be relied on to save. Return:
 * 0, -ENOMEM.
 */
int me_entries_drop_costly(const struct mp_cfg *cfg, const struct mp_counts *counts,
			   struct me_entries *entries, struct me_plan *plan, struct mp_err *err);

#endif
