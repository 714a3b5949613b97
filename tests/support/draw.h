// SPDX-License-Identifier: Apache-2.0
/*
 * draw - draws smaller profiles from larger ones, as if the sampler had run at a lower rate.
 */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

struct draw {
	uint64_t state;
};

/* The same seed gives the same numbers on every machine. */
void draw_init(struct draw *d, uint64_t seed);
/* Return: a number in [0, 1). */
double draw_uniform(struct draw *d);
/*
 * draw_binomial - how many of @n elements are kept, each with probability @p. Uses a normal
 * approximation for large means, where the difference is negligible.
 */
uint64_t draw_binomial(struct draw *d, uint64_t n, double p);

#endif
