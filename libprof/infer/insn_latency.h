// SPDX-License-Identifier: Apache-2.0
/*
 * insn_latency - estimates how many timer samples an instruction gets from the latency of the one
 * before it.
 * The processor takes a timer interrupt between two instructions, when the first one has
 * ended. An instruction is therefore sampled for as long as the one before it takes: often
 * behind a load, hardly ever behind plain arithmetic, several of which end at once.
 */
#ifndef MP_INSN_LATENCY_H
#define MP_INSN_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/insn/insn.h"

/* Classes of instructions by their latency: how long the next one waits for them. */
enum mp_latency {
	MP_LATENCY_PLAIN,    /* registers alone */
	MP_LATENCY_MOVE,     /* register to register, comparison, nop */
	MP_LATENCY_LOAD,     /* memory into a register */
	MP_LATENCY_LOAD_USE, /* arithmetic or a comparison with memory */
	MP_LATENCY_MODIFY,   /* memory read and written */
	MP_LATENCY_STORE,
	MP_LATENCY_PUSH,
	MP_LATENCY_POP,
	MP_LATENCY_CALL,
	MP_LATENCY_DIVIDE,
	MP_LATENCY_VECTOR,
	MP_LATENCY_LOCKED,
	MP_LATENCY_BRANCH, /* the branch at a block's end: the next block's first instruction waits */
	MP_NR_LATENCIES
};

/* @bytes: those of @insn. */
enum mp_latency mp_insn_latency(const uint8_t *bytes, const struct mp_insn *insn);
/* Cost in units of the average instruction. */
double mp_latency_cost(enum mp_latency latency);

#endif
