// SPDX-License-Identifier: Apache-2.0
/* nops - no-ops of 1 to 9 bytes, with which code is padded that control may fall into. */
#ifndef ME_NOPS_H
#define ME_NOPS_H

#include <stdint.h>

#define ME_NOP_MAX 9

/* Writes one no-op at @bytes, of at most @room bytes. @room: at least 1. Return: its length. */
unsigned int me_nop_put(uint8_t *bytes, uint64_t room);

#endif
