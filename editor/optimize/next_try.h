// SPDX-License-Identifier: Apache-2.0
/*
 * next_try - what the next attempt does otherwise, since verify refused the last output, or a stage
 * could not make it: registers that numbers do not use (in the third attempt the function has no
 * numbers), instructions for markers that stay, functions that stay as a whole. Each attempt is
 * verified as the first one.
 */
#ifndef ME_NEXT_TRY_H
#define ME_NEXT_TRY_H

#include <stdint.h>

#include "editor/marker/slice.h"
#include "editor/verify/verify.h"
#include "libprof/cfg/cfg.h"

#define ME_UNPROVED_ANY 0xffff /* all registers */

/* Attempts that leave functions out. */
#define ME_NEXT_TRIES_MAX 8

struct me_next_try {
	struct me_unproved *registers;
	uint32_t nr_registers;
	struct me_slice_barred needed;
	struct me_refused *left_out; /* functions */
	uint32_t nr_left_out, nr_tries;
};

/*
 * me_next_try_learn - adds what @report refused.
 * Return: 0, -ENOMEM; -EPERM, with @err unchanged: another attempt is useless, because nothing of
 * it is new or has a function, or there were too many attempts. Ownership: me_next_try_fini().
 */
int me_next_try_learn(struct me_next_try *next, const struct me_verify_report *report,
		      struct mp_err *err);
/* Add the registers to @barred, which is per function of @cfg. */
void me_next_try_bar(const struct me_next_try *next, const struct mp_cfg *cfg, uint16_t *barred);
void me_next_try_fini(struct me_next_try *next);

#endif
