/* SPDX-License-Identifier: Apache-2.0 */
/* walk - what the programs walk and walked share: the return addresses of the moment. */
#ifndef MORPH_TESTS_GUEST_WALK_H
#define MORPH_TESTS_GUEST_WALK_H

#include <stdint.h>

#define WALKED_MAX 512

enum walked_phase {
	PHASE_CHAIN,	/* frames of several forms */
	PHASE_ALTSTACK, /* a signal handler with a stack of its own */
	PHASE_DEEP,	/* deeper than a walk goes */
	PHASE_GARBAGE,	/* rbp is a number */
	PHASE_JIT,	/* code without rows, with a frame pointer */
	PHASE_CALLS,	/* the innermost calls are new at each sample */
	NR_PHASES,
};

#define PHASE_NONE NR_PHASES

/* Shared memory. */
struct walked {
	volatile uint32_t phase; /* the program spins in this phase */
	volatile uint32_t want;	 /* the phase that it is to go to */
	uint64_t spin_from, spin_to;
	volatile uint32_t nr;
	volatile uint64_t ips[WALKED_MAX]; /* outermost first */
};

#endif
