// SPDX-License-Identifier: Apache-2.0
/*
 * flags - at which blocks arithmetic flags that were set before are still read. Called
 * by instrument and number.
 *
 * A counting instruction (`inc`) changes all flags but the carry, a polling one (`cmp`)
 * the carry, too. They may only stand where these flags are not read. By the ABI no
 * flags are passed in calls and returns, but hand-written code may pass them; this code
 * finds such functions.
 */
#ifndef ME_FLAGS_H
#define ME_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct mp_cfg;

struct me_flags {
	uint16_t *live;	 /* per block: flags that are read (ZYDIS_CPUFLAG_*) */
	uint8_t *shared; /* per function: its callers or callees may rely on flags */
};

/*
 * me_flags_find - for the functions with @wanted[func]; for all others, every flag
 * counts as read. @carry: include the carry.
 * Return: 0, -ENOMEM. Ownership: me_flags_fini(@out).
 */
int me_flags_find(const struct mp_cfg *cfg, const uint8_t *wanted, bool carry, struct me_flags *out,
		  struct mp_err *err);
void me_flags_fini(struct me_flags *flags);

#endif
