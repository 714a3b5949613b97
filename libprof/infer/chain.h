// SPDX-License-Identifier: Apache-2.0
/*
 * chain - computes how often a Markov chain that ends visits each of its states.
 *
 * States are eliminated one by one, those with the fewest neighbours first, without any
 * subtraction (Grassmann, Taksar and Heyman 1985). A loop with a million turns is therefore
 * as exact as one without any. Any graph is allowed, also a reducible one; for flow graphs
 * the result is little larger than the graph itself. Knows nothing of code or profiles;
 * called by path_infer.
 */
#ifndef MP_CHAIN_H
#define MP_CHAIN_H

#include <stdint.h>

#include "libprof/base/err.h"

struct mp_chain_step {
	uint32_t from, to;
	double share; /* share of the visits of @from after which the chain goes on to @to; > 0 */
};

struct mp_chain;

/*
 * mp_chain_new - prepares a chain. @leave: per state, the share of visits at which the
 * chain ends. It and the shares of the state's steps add up to 1, but for rounding. Two
 * states may have several steps.
 *
 * Return: 0, -ENOMEM, -EINVAL (a bad number), -EDOM (the chain never leaves some states),
 * -E2BIG (eliminating would take more than @max_steps). Ownership: mp_chain_free(*@out),
 * which takes NULL.
 */
int mp_chain_new(uint32_t nr_states, const struct mp_chain_step *steps, uint32_t nr_steps,
		 const double *leave, uint64_t max_steps, struct mp_chain **out,
		 struct mp_err *err);
void mp_chain_free(struct mp_chain *chain);
/* Visits of each state if the chain starts @start times in each. Both may be the same array. */
void mp_chain_visits(const struct mp_chain *chain, const double *start, double *visits);
/* The earnings of a start in each state if each visit earns @gain. Both may be the same array. */
void mp_chain_worth(const struct mp_chain *chain, const double *gain, double *worth);

#endif
