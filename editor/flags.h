// SPDX-License-Identifier: Apache-2.0
/*
 * flags - at which blocks somebody still reads arithmetic flags that were set before.
 *
 * An instruction that counts changes all of them but the carry (`inc`), one that polls the carry as
 * well (`cmp`), so it may stand only where nobody does. By the ABI nobody does across a call or a
 * return; hand-written code may, and what of it is seen to is found here.
 */
#ifndef ME_FLAGS_H
#define ME_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"

struct me_flags {
	uint16_t *live;	 /* per block: those of overflow, sign, zero, adjust, parity, and the carry
			 * where it was asked for, that are read */
	uint8_t *shared; /* per function: a caller or callee of it may rely on flags */
};

/*
 * me_flags_find - for the functions with @wanted[func]; of the others @live is set, to be safe.
 * @carry: of the carry too.
 * Return: 0, -ENOMEM, -EPERM some code takes flags from a function that cannot be told.
 * Ownership: me_flags_fini(@out).
 */
int me_flags_find(const struct mp_cfg *cfg, const uint8_t *wanted, bool carry, struct me_flags *out,
		  struct mp_err *err);
void me_flags_fini(struct me_flags *flags);

#endif
