// SPDX-License-Identifier: Apache-2.0
/*
 * unproved_registers - keeps, per function, the registers that verify refused for numbers, from one
 * attempt to the next: in the second attempt the function uses other registers, in the third it
 * has no numbers.
 */
#ifndef ME_UNPROVED_REGISTERS_H
#define ME_UNPROVED_REGISTERS_H

#include <stdint.h>

#include "editor/verify/verify.h"
#include "libprof/cfg/cfg.h"

#define ME_UNPROVED_ANY 0xffff /* all registers */

struct me_unproved_registers {
	struct me_unproved *list;
	uint32_t nr;
};

/*
 * me_unproved_registers_add - adds the registers in @report.
 * Return: 0, -ENOMEM; -EPERM, with @err unchanged: another attempt is useless, because none of
 * them is new, or there are too many. Ownership: free(@list->list).
 */
int me_unproved_registers_add(struct me_unproved_registers *list,
			      const struct me_verify_report *report, struct mp_err *err);
/* Add the registers to @barred, which is per function of @cfg. */
void me_unproved_registers_spread(const struct me_unproved_registers *list,
				  const struct mp_cfg *cfg, uint16_t *barred);

#endif
