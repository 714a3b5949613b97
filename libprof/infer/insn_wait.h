// SPDX-License-Identifier: Apache-2.0
/*
 * insn_wait - estimates how many timer samples an instruction gets.
 * The processor takes a timer interrupt between two instructions, when the first one has
 * ended. An instruction is therefore sampled for as long as the one before it takes: often
 * behind a load, hardly ever behind plain arithmetic, several of which end at once.
 */
#ifndef MP_INSN_WAIT_H
#define MP_INSN_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/insn/insn.h"

/* Classes of instructions by the wait that they cause for the next one. */
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
	MP_WAIT_BRANCH, /* the branch at a block's end: the next block's first instruction waits */
	MP_NR_WAITS
};

/* @bytes: those of @insn. */
enum mp_wait mp_insn_wait(const uint8_t *bytes, const struct mp_insn *insn);
/* Cost in units of the average instruction. */
double mp_wait_cost(enum mp_wait wait);

#endif
