// SPDX-License-Identifier: Apache-2.0
/*
 * unproved - registers that verify would not have numbers in, per function, from one try to the
 * next: in the second one the function keeps its numbers elsewhere, in the third it has none.
 */
#ifndef ME_UNPROVED_H
#define ME_UNPROVED_H

#include <stdint.h>

#include "editor/verify.h"
#include "libprof/cfg.h"

#define ME_UNPROVED_ANY 0xffff /* registers */

struct me_unproved_list {
	struct me_unproved *list;
	uint32_t nr;
};

/*
 * me_unproved_add - take over what @report names.
 * Return: 0, -ENOMEM; -EPERM, with @err as it was: nothing of it is new, or it is too much, and
 * another try would be in vain. Ownership: free(@list->list).
 */
int me_unproved_add(struct me_unproved_list *list, const struct me_verify_report *report,
		    struct mp_err *err);
/* Into @barred, per function of @cfg. */
void me_unproved_spread(const struct me_unproved_list *list, const struct mp_cfg *cfg,
			uint16_t *barred);

#endif
