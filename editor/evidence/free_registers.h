// SPDX-License-Identifier: Apache-2.0
/*
 * free_registers - finds general registers that hold no value while control is in a block. Called
 * by number.
 *
 * A path number may be kept in such a register. Liveness by the ABI's rules alone would not be a
 * proof: a compiler that sees caller and callee relies on registers that the callee leaves alone
 * (GCC's -fipa-ra), and hand-written code passes values in any register. So a caller-saved register
 * is free in a function only if the function or a callee changes it anyway; and a register that
 * callers read behind a call is a result.
 */
#ifndef ME_FREE_REGISTERS_H
#define ME_FREE_REGISTERS_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

/* Masks have bit n for the register that instructions encode as n: rax, rcx, rdx, rbx, rsp, ... */
#define ME_CALLEE_SAVED_REGISTERS 0xf038u /* rbx, rsp, rbp, r12 to r15 */

struct me_free_registers {
	uint16_t *free; /* per block: free in all of it; never rsp and rbp */
	uint16_t *dead; /* per block: dead at its start; the block may set it */
};

/*
 * me_free_registers_find - finds free registers of functions with @wanted[func]; others get none.
 * @cfg has fine blocks: behind the call that ends a block, a caller-saved register is no longer
 * free.
 * Return: 0, -ENOMEM. Ownership: me_free_registers_fini(@out).
 */
int me_free_registers_find(const struct mp_cfg *cfg, const uint8_t *wanted,
			   struct me_free_registers *out, struct mp_err *err);
void me_free_registers_fini(struct me_free_registers *registers);

#endif
