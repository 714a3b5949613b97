// SPDX-License-Identifier: Apache-2.0
/*
 * stub_code - the size and the bytes of a stub's instructions. Called by place and copy.
 */
#ifndef ME_STUB_CODE_H
#define ME_STUB_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/instrumentation.h"

/* As a base, rsp and r12 need a SIB byte. */
static inline bool me_needs_sib(uint8_t reg)
{
	return (reg & 7) == 4;
}

/* Return: bytes of the instructions. */
uint32_t me_stub_code_size(const struct me_stub *stub, enum me_counters counters);
/* Return: how far before the end of the instructions the check's call stands; %rsp is ME_RED_ZONE lower there. */
uint32_t me_stub_code_check_call(const struct me_stub *stub, enum me_counters counters);
/*
 * me_stub_code_write - writes the instructions to @out; @vaddr is their address in the output.
 * Return: 0, -ERANGE out of reach.
 */
int me_stub_code_write(const struct me_stub *stub, enum me_counters counters,
		       const struct me_stub_places *places, uint64_t vaddr, uint8_t *out);

#endif
