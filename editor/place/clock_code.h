// SPDX-License-Identifier: Apache-2.0
/*
 * clock_code - the instructions that count calls down at the entry of a function, and those that have
 * one sampled. Called by stub_code. At the entry:
 *
 *		decl	left(%rip)
 *		js	1f
 *		the function
 *
 * and far from all other code:
 *
 *	1:	lea	-128(%rsp), %rsp
 *		call	the runtime's entry for calls, which adds 128 to %rsp
 *		jmp	the function
 *
 * The count is private memory of the process, which its threads share (struct me_call_clock). These
 * instructions change flags, which must be dead, and the count. The runtime changes no register; its
 * return address says which function was called. `lea` spares the red zone, as in audit_code.h.
 */
#ifndef ME_CLOCK_CODE_H
#define ME_CLOCK_CODE_H

#include <stdint.h>

#include "editor/instrumentation.h"

#define ME_CLOCK_CODE_SIZE  12
#define ME_SAMPLE_CODE_SIZE 10
/* Offset of the call; %rsp is ME_RED_ZONE lower there. */
#define ME_SAMPLE_CODE_CALL 5

/*
 * Write the instructions to @out; @vaddr is their address in the output.
 * Return: 0, -ERANGE out of reach.
 */
int me_clock_code_write(const struct me_stub_places *places, uint64_t vaddr, uint8_t *out);
int me_sample_code_write(const struct me_stub_places *places, uint64_t vaddr, uint8_t *out);

#endif
