// SPDX-License-Identifier: Apache-2.0
/*
 * audit_simulate - how often audits of invented run times are right.
 *
 *	audit-simulate RUNS [MAX-PAIRS]
 *
 * Prints how many of RUNS audits claim a difference although there is none, and how many find one, with several
 * kinds of noise; then how many find which effect within 8, 16, 32 and 64 pairs. The test and its defaults are
 * those of morph-audit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/base/defaults.h"
#include "tests/support/audits/audit_simulate.h"

static void simulate(struct me_simulation *sim, size_t nr_audits, size_t max_pairs)
{
	sim->alpha = MP_ALPHA;
	sim->nr_audits = nr_audits;
	sim->max_pairs = max_pairs;
	sim->seed = 1;
	if (me_simulate(sim)) {
		fputs("audit-simulate: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
}

/* How often an audit is right or wrong with each kind of noise. */
static void print_noises(size_t nr, size_t max)
{
	static const double effects[] = {0, 0.005, 0.01, 0.05};

	printf("%-16s %10s %10s %10s %10s %12s\n", "noise", "B faster", "claimed", "slower",
	       "covered", "mean pairs");
	for (int noise = 0; noise < ME_NR_NOISES; noise++)
		for (size_t e = 0; e < sizeof(effects) / sizeof(effects[0]); e++) {
			struct me_simulation sim = {.noise = (enum me_noise)noise,
						    .effect = effects[e]};

			simulate(&sim, nr, max);
			printf("%-16s %8.1f %% %10zu %10zu %10zu %12.1f\n",
			       me_noise_name(sim.noise), 100 * sim.effect, sim.nr_positive,
			       sim.nr_negative, sim.nr_covered, sim.mean_pairs);
		}
}

/* How soon an audit is right. */
static void print_power(size_t nr, size_t max)
{
	static const double effects[] = {0.01, 0.02, 0.05, 0.1}, sds[] = {0.01, 0.03, 0.05};

	printf("%8s %11s  in", "noise", "B faster");
	for (int i = 0; i < ME_NR_WITHINS; i++)
		printf(" %5zu   ", me_sim_withins[i]);
	puts("pairs");
	for (size_t s = 0; s < sizeof(sds) / sizeof(sds[0]); s++)
		for (size_t e = 0; e < sizeof(effects) / sizeof(effects[0]); e++) {
			struct me_simulation sim = {.noise = ME_NOISE_GAUSSIAN,
						    .sd = sds[s],
						    .effect = log1p(effects[e])};

			simulate(&sim, nr, max);
			printf("%6.0f %% %9.0f %% ", 100 * sim.sd, 100 * effects[e]);
			for (int i = 0; i < ME_NR_WITHINS; i++)
				printf(" %6.1f %%", 100 * (double)sim.nr_within[i] / (double)nr);
			putchar('\n');
		}
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	size_t max = argc > 2 ? strtoul(argv[2], NULL, 10) : ME_MAX_PAIRS;

	if (!nr || !max) {
		fputs("usage: audit-simulate RUNS [MAX-PAIRS]\n", stderr);
		return 2;
	}
	printf("claims in %zu audits each, alpha %g, looking after each of at most %zu pairs\n\n",
	       nr, MP_ALPHA, max);
	print_noises(nr, max);
	puts("\naudits that find B faster, with Gaussian noise in each run\n");
	print_power(nr, max);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
