// SPDX-License-Identifier: Apache-2.0
/*
 * registers - in which general registers nobody keeps anything while control is in a block.
 *
 * Who wants to keep a number of its own there must know more than liveness by the ABI: a compiler
 * that sees caller and callee relies on what the callee leaves alone (GCC's -fipa-ra), and
 * hand-written code passes what it likes. So a register that callees may change is free in a
 * function only if the function, or whom it calls, changes it anyway; and what callers are seen to
 * read behind a call is a result.
 */
#ifndef ME_REGISTERS_H
#define ME_REGISTERS_H

#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"

/* Masks have bit n for the register that instructions encode as n: rax, rcx, rdx, rbx, rsp, ... */
#define ME_REGISTERS_CALLEE_SAVED 0xf038u /* rbx, rsp, rbp, r12 to r15; others callees may change */

struct me_registers {
	uint16_t *free; /* per block: from its start to its end; never rsp and rbp */
	uint16_t *dead; /* per block: at its start, whatever it does then */
};

/*
 * me_registers_find - for the functions with @wanted[func]; in the others none is free. @cfg has fine
 * blocks: behind the call that one ends with, a register that callees may change is free no longer.
 * Return: 0, -ENOMEM. Ownership: me_registers_fini(@out).
 */
int me_registers_find(const struct mp_cfg *cfg, const uint8_t *wanted, struct me_registers *out,
		      struct mp_err *err);
void me_registers_fini(struct me_registers *registers);

#endif
