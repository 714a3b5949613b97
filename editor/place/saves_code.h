// SPDX-License-Identifier: Apache-2.0
/*
 * saves_code - instructions that stand in place of saves and restores of registers, or before code
 * where these must be saved. Called by place and emit.
 */
#ifndef ME_SAVES_CODE_H
#define ME_SAVES_CODE_H

#include <stdint.h>

#include "editor/plan.h"

/* Bytes of the code of @unsaved, which saves or steps. */
uint32_t me_saves_code_size(const struct me_unsaved *unsaved);
/* Writes it. Return: 0. */
int me_saves_code_write(const struct me_unsaved *unsaved, uint8_t *out);

#endif
