// SPDX-License-Identifier: Apache-2.0
/*
 * audit_ranges - the table of audited functions, once their versions have addresses. Called by
 * emit.
 */
#ifndef ME_AUDIT_RANGES_H
#define ME_AUDIT_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "editor/place/place.h"

/*
 * me_audit_ranges_encode - the section .morph.audit of @placement as bytes.
 * Return: 0, -ENOMEM. Ownership: free(*@bytes).
 */
int me_audit_ranges_encode(const struct mp_cfg *cfg, uint32_t nr_audited,
			   const struct me_placement *placement, uint8_t **bytes, size_t *size,
			   struct mp_err *err);

#endif
