// SPDX-License-Identifier: Apache-2.0
/*
 * copy - the bytes of moved code: instructions unchanged, displacements adjusted, branches as
 * placed.
 */
#ifndef ME_COPY_H
#define ME_COPY_H

#include <stdint.h>

#include "editor/place.h"

/*
 * me_copy_write - write all copies into @text, which stands for [placement->base, ->end).
 * Return: 0, -ERANGE a displacement does not fit (the new segment is too far away), -EBADMSG.
 */
int me_copy_write(const struct mp_cfg *cfg, const struct me_placement *placement,
		  const struct me_pointers *pointers, uint8_t *text, struct mp_err *err);

/* Store @target - @field_end as a rel32. Return: false if it does not fit. */
bool me_put_rel32(uint8_t *field, uint64_t field_end, uint64_t target);

#endif
