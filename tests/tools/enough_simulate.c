// SPDX-License-Identifier: Apache-2.0
/*
 * enough_simulate - what libprof/trial/enough.h foresees from samples of a made-up program, beside
 * what comes true.
 *
 *	enough-simulate BLOCKS EXPONENT
 *
 * The k-th block runs as often as k^-EXPONENT, and has two ways out; of three in five, one way is
 * taken nine of ten times or more. One of the two ways, at random, is a taken branch in the
 * original. Samples are drawn, twice as many in each row: what a layout by all samples so far
 * saves, and what one by endless samples would save more, beside its estimate.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/base/mix.h"
#include "libprof/trial/enough.h"

#define FIRST_SAMPLES 1024
#define ROWS	      12
#define SCALE	      1e12 /* counts of endless samples */

struct program {
	size_t nr_edges;
	uint32_t *group;
	bool *taken;
	double *below; /* chance that a sample is of this edge or an earlier one */
	uint64_t *truth, *halves[2], *all;
	uint64_t state;
};

static double uniform(struct program *p)
{
	return ((double)(me_next_random(&p->state) >> 11) + 0.5) / 9007199254740992.0;
}

static void make_program(struct program *p, double exponent)
{
	double sum = 0;

	for (size_t i = 0; i < p->nr_edges; i += 2) {
		double flow = pow((double)(i / 2 + 1), -exponent), way = uniform(p);

		if (uniform(p) < 0.6)
			way = way < 0.5 ? way / 5 : 1 - (1 - way) / 5;
		p->group[i] = p->group[i + 1] = (uint32_t)(i / 2);
		p->taken[i] = uniform(p) < 0.5;
		p->taken[i + 1] = !p->taken[i];
		p->below[i] = sum += flow * way;
		p->below[i + 1] = sum += flow * (1 - way);
	}
	for (size_t i = 0; i < p->nr_edges; i++) {
		p->below[i] /= sum;
		p->truth[i] = (uint64_t)(SCALE * (p->below[i] - (i ? p->below[i - 1] : 0)));
	}
}

static void draw_samples(struct program *p, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		double at = uniform(p);
		size_t low = 0, high = p->nr_edges - 1;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (p->below[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		p->halves[i % 2][low]++;
		p->all[low]++;
	}
}

/* What a layout by @counts saves in truth, in points. */
static double true_saving(const struct program *p, const uint64_t *counts)
{
	double taken = 0, left = 0;

	for (size_t i = 0; i < p->nr_edges; i += 2) {
		size_t falls = i + (counts[i + 1] > counts[i]);

		/* without a sample, the original's way stays */
		if (!counts[i] && !counts[i + 1])
			falls = i + p->taken[i];
		taken += (double)p->truth[i + !p->taken[i]];
		left += (double)p->truth[falls ^ 1];
	}
	return 100 * (taken - left) / taken;
}

static void print_rows(struct program *p)
{
	const struct mp_flow flow = {.nr_edges = p->nr_edges, .group = p->group, .taken = p->taken};
	double best = true_saving(p, p->truth);
	struct mp_enough e = {0};

	printf("%10s %8s %10s %8s %8s\n", "samples", "saving", "coverage", "more", "foreseen");
	for (size_t row = 0, nr = FIRST_SAMPLES; row < ROWS; row++, nr *= 2) {
		double saving;

		draw_samples(p, row ? nr / 2 : nr);
		saving = true_saving(p, p->all);
		if (mp_enough_counts(&flow, p->halves[0], p->halves[1], &e))
			exit(EXIT_FAILURE);
		printf("%10zu %8.1f %8.0f %% %8.1f %8.1f\n", nr, saving, 100 * e.coverage,
		       best - saving, e.more);
	}
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? 2 * strtoul(argv[1], NULL, 10) : 0;
	struct program p = {.nr_edges = nr, .state = 7};

	if (argc != 3 || !nr) {
		fputs("usage: enough-simulate BLOCKS EXPONENT\n", stderr);
		return 2;
	}
	p.group = calloc(nr, sizeof(*p.group));
	p.taken = calloc(nr, sizeof(*p.taken));
	p.below = calloc(nr, sizeof(*p.below));
	p.truth = calloc(nr, sizeof(*p.truth));
	p.all = calloc(nr, sizeof(*p.all));
	p.halves[0] = calloc(nr, sizeof(*p.all));
	p.halves[1] = calloc(nr, sizeof(*p.all));
	if (!p.group || !p.taken || !p.below || !p.truth || !p.all || !p.halves[0] ||
	    !p.halves[1]) {
		fputs("enough-simulate: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	make_program(&p, strtod(argv[2], NULL));
	print_rows(&p);
	free(p.group);
	free(p.taken);
	free(p.below);
	free(p.truth);
	free(p.all);
	free(p.halves[0]);
	free(p.halves[1]);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
