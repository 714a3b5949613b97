// SPDX-License-Identifier: Apache-2.0
/* draw - random numbers; see draw.h. Called by tests/tools/accuracy. */
#include "tests/support/draw.h"

#include <math.h>

#define NORMAL_FROM 4096

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t next(struct draw *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void draw_init(struct draw *d, uint64_t seed)
{
	d->state = seed;
}

double draw_uniform(struct draw *d)
{
	return (double)(next(d) >> 11) * 0x1p-53;
}

static double normal(struct draw *d)
{
	double u = 1 - draw_uniform(d), v = draw_uniform(d);

	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

uint64_t draw_binomial(struct draw *d, uint64_t n, double p)
{
	double mean = (double)n * p, at;
	uint64_t kept = 0;

	if (!(p > 0) || !n)
		return 0;
	if (p >= 1)
		return n;
	if (mean > NORMAL_FROM && (double)n - mean > NORMAL_FROM) {
		at = round(mean + sqrt(mean * (1 - p)) * normal(d));
		return at < 0 ? 0 : at > (double)n ? n : (uint64_t)at;
	}
	/* Jump from one kept element to the next: the distances are geometric. */
	for (at = 0; kept < n; kept++) {
		at += floor(log1p(-draw_uniform(d)) / log1p(-p)) + 1;
		if (at > (double)n)
			break;
	}
	return kept;
}
