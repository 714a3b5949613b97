// SPDX-License-Identifier: Apache-2.0
/*
 * draw - smaller profiles out of larger ones: what a sampler would have seen that looked less often.
 */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

struct draw {
	uint64_t state;
};

/* The same seed gives the same numbers on each machine. */
void draw_init(struct draw *d, uint64_t seed);
/* From 0 to below 1. */
double draw_uniform(struct draw *d);
/*
 * draw_binomial - how many of @n are kept where each is with probability @p. Beyond means of a few
 * thousand a normal law, which nobody tells apart there.
 */
uint64_t draw_binomial(struct draw *d, uint64_t n, double p);

#endif
