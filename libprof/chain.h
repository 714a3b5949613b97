// SPDX-License-Identifier: Apache-2.0
/*
 * chain - how often a Markov chain that ends visits each of its states.
 *
 * States are eliminated one by one, the ones with the fewest neighbours first, without ever a
 * subtraction (Grassmann, Taksar and Heyman 1985): so a loop that goes round a million times is as
 * exact as one that never does. Any graph will do, reducible or not; of flow graphs little more
 * than the graph itself is stored. Knows nothing of code or profiles; called by path_infer.
 */
#ifndef MP_CHAIN_H
#define MP_CHAIN_H

#include <stdint.h>

#include "libprof/err.h"

struct mp_chain_step {
	uint32_t from, to;
	double share; /* of the times that the chain is in @from, it goes on to @to; > 0 */
};

struct mp_chain;

/*
 * mp_chain_new - @leave: per state, the share of times that the chain ends there; with the shares
 * of its steps that makes 1, up to rounding. Between two states there may be several steps.
 * Return: 0, -ENOMEM, -EINVAL (no sensible number), -EDOM (there are states that the chain never
 * leaves), -E2BIG (eliminating would take more than @max_steps). Ownership: mp_chain_free(*@out),
 * which takes NULL.
 */
int mp_chain_new(uint32_t nr_states, const struct mp_chain_step *steps, uint32_t nr_steps,
		 const double *leave, uint64_t max_steps, struct mp_chain **out,
		 struct mp_err *err);
void mp_chain_free(struct mp_chain *chain);
/* Each state's visits, if the chain starts @start times in each; may be the same array. */
void mp_chain_visits(const struct mp_chain *chain, const double *start, double *visits);
/* What a start in each state earns, if each visit earns @gain; may be the same array. */
void mp_chain_worth(const struct mp_chain *chain, const double *gain, double *worth);

#endif
