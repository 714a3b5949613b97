// SPDX-License-Identifier: Apache-2.0
/*
 * copy - the bytes of moved code: instructions unchanged, displacements adjusted,
 * branches as place decided. Called by emit.
 */
#ifndef ME_COPY_H
#define ME_COPY_H

#include <stdint.h>

#include "editor/place/place.h"

/*
 * me_copy_write - write all copies into @text, the bytes of [placement->base, ->text_end).
 * Return: 0, -ERANGE a displacement does not fit (the new segment is too far away), -EBADMSG.
 */
int me_copy_write(const struct mp_cfg *cfg, const struct me_placement *placement,
		  const struct me_redirects *redirects, uint8_t *text, uint64_t *failed_at,
		  struct mp_err *err);

/* me_put_rel32 - store @target - @field_end as a rel32. Return: false if it does not fit. */
bool me_put_rel32(uint8_t *field, uint64_t field_end, uint64_t target);

#endif
