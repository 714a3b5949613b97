// SPDX-License-Identifier: Apache-2.0
/*
 * insn_wait - how many timer samples an instruction draws, before anybody has counted it.
 *
 * A timer's interrupt is taken between two instructions, when the one in front has ended. So an
 * instruction is sampled for as long as the one before it takes: behind a load often, behind plain
 * arithmetic, of which several end at once, hardly ever.
 */
#ifndef MP_INSN_WAIT_H
#define MP_INSN_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/insn.h"

/* What an instruction makes the next one wait for. */
enum mp_wait {
	MP_WAIT_PLAIN,	  /* registers alone */
	MP_WAIT_MOVE,	  /* register to register, comparison, nop */
	MP_WAIT_LOAD,	  /* memory into a register */
	MP_WAIT_LOAD_USE, /* arithmetic or a comparison with memory */
	MP_WAIT_MODIFY,	  /* memory read and written */
	MP_WAIT_STORE,
	MP_WAIT_PUSH,
	MP_WAIT_POP,
	MP_WAIT_CALL,
	MP_WAIT_DIVIDE,
	MP_WAIT_VECTOR,
	MP_WAIT_LOCKED,
	MP_WAIT_BRANCH, /* whatever ends a block: the first instruction of the next one waits */
	MP_NR_WAITS
};

/* @bytes: @insn's own. */
enum mp_wait mp_insn_wait(const uint8_t *bytes, const struct mp_insn *insn);
/* In units of the average instruction. */
double mp_wait_cost(enum mp_wait wait);

#endif
