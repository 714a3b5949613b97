// SPDX-License-Identifier: Apache-2.0
/* unproved_registers - collects registers that verify refused. Called by optimize. */
#include "editor/optimize/unproved_registers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* With more functions, the whole file is refused. */
#define MAX_FUNCS 65536

static struct me_unproved *find(const struct me_unproved_registers *list, uint64_t start)
{
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->list[i].start == start)
			return &list->list[i];
	return NULL;
}

int me_unproved_registers_add(struct me_unproved_registers *list,
			      const struct me_verify_report *report, struct mp_err *err)
{
	struct me_unproved *more;
	bool any = false;

	if (list->nr > MAX_FUNCS)
		return -EPERM;
	more = reallocarray(list->list, list->nr + report->nr_unproved + 1, sizeof(*more));
	if (!more)
		return mp_err_set(err, ENOMEM, "out of memory");
	list->list = more;
	for (uint32_t i = 0; i < report->nr_unproved; i++) {
		struct me_unproved *known = find(list, report->unproved[i].start);

		if (!known) {
			list->list[list->nr++] = report->unproved[i];
			any = true;
		} else if (known->registers != ME_UNPROVED_ANY) {
			known->registers = ME_UNPROVED_ANY;
			any = true;
		}
	}
	return any ? 0 : -EPERM;
}

void me_unproved_registers_spread(const struct me_unproved_registers *list,
				  const struct mp_cfg *cfg, uint16_t *barred)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t f = mp_cfg_func_at(cfg, list->list[i].start);

		if (f != MP_NONE)
			barred[f] |= list->list[i].registers;
	}
}
