// SPDX-License-Identifier: Apache-2.0
/*
 * trial_simulate - how often trials by invented everyday use are right.
 *
 *	trial-simulate TRIALS MAX-PAIRS [effects | noises]
 *
 * Prints the verdicts of TRIALS trials of versions that are faster and slower; then of equal
 * versions, with several kinds of use and of noise. tests/support/audits/trial_simulate.h says what
 * is invented.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/defaults.h"
#include "tests/support/audits/trial_simulate.h"

#define SD 0.1 /* of blocks; the noise of audit_simulate.h has 0.01 */

static uint64_t nr_rows;

static void simulate(struct me_trial_simulation *sim, size_t nr_trials, uint32_t max_pairs)
{
	sim->nr_trials = nr_trials;
	sim->max_pairs = max_pairs;
	/* Each table row has coins of its own. */
	sim->seed = ++nr_rows * UINT64_C(1000003);
	if (me_trial_simulate(sim)) {
		fputs("trial-simulate: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
}

static void print_head(void)
{
	printf("%-14s %-14s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "use", "noise", "effect",
	       "faster", "slower", "equal", "harm", "open", "unlike", "covered", "median", "most");
}

static void print_row(const struct me_trial_simulation *s)
{
	printf("%-14s %-14s %6.1f %% %8zu %8zu %8zu %8zu %8zu %8zu %8zu %8u %8u\n",
	       me_use_name(s->use), me_noise_name(s->noise), 100 * expm1(s->effect),
	       s->nr[MP_TRIAL_FASTER], s->nr[MP_TRIAL_SLOWER], s->nr[MP_TRIAL_EQUAL_SPEED],
	       s->nr[MP_TRIAL_MUCH_SLOWER], s->nr[MP_TRIAL_UNDECIDED], s->nr_unlike, s->nr_covered,
	       s->median_pairs, s->most_pairs);
}

static void print_noises(size_t nr, uint32_t max)
{
	puts("Equal versions\n");
	print_head();
	for (int use = 0; use < ME_NR_USES; use++)
		for (int noise = 0; noise < ME_NR_NOISES; noise++) {
			struct me_trial_simulation sim = {.use = (enum me_use)use,
							  .noise = (enum me_noise)noise,
							  .noise_scale = 100 * SD,
							  .alpha = MP_ALPHA};

			simulate(&sim, nr, max);
			print_row(&sim);
		}
}

static void print_effects(size_t nr, uint32_t max, enum me_use use, double sd,
			  const double *effects, size_t nr_effects)
{
	for (size_t e = 0; e < nr_effects; e++) {
		struct me_trial_simulation sim = {.use = use,
						  .noise = ME_NOISE_GAUSSIAN,
						  .noise_scale = 100 * sd,
						  .effect = log1p(effects[e]),
						  .alpha = MP_ALPHA};

		simulate(&sim, nr, max);
		print_row(&sim);
	}
}

static void print_all_effects(size_t nr, uint32_t max)
{
	static const double effects[] = {-0.2, -0.03, -0.01, 0.01, 0.02, 0.03, 0.05, 0.1};
	static const double three[] = {-0.03, 0.03}, kinds[] = {-0.03, 0.03, 0.08};
	static const double sds[] = {0.02, 0.06, SD / M_SQRT2, SD};

	for (size_t i = 0; i < sizeof(sds) / sizeof(sds[0]); i++) {
		printf("Gaussian noise of %.1f %% in a block, %.1f %% in a pair\n\n", 100 * sds[i],
		       100 * sds[i] * M_SQRT2);
		print_head();
		print_effects(nr, max, ME_USE_STEADY, sds[i], effects,
			      sizeof(effects) / sizeof(effects[0]));
		putchar('\n');
	}
	for (size_t i = 0; i < 2; i++) {
		printf("Kinds of work that the counters hardly tell, noise of %.1f %% in a block\n\n",
		       100 * sds[i]);
		print_head();
		print_effects(nr, max, ME_USE_KINDS, sds[i], kinds,
			      sizeof(kinds) / sizeof(kinds[0]));
		putchar('\n');
	}
	printf("Noise of %.1f %% in a block, other kinds of use\n\n", 100 * SD);
	print_head();
	for (int use = ME_USE_STEADY + 1; use < ME_NR_USES; use++)
		print_effects(nr, max, (enum me_use)use, SD, three, 2);
	putchar('\n');
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	uint32_t max = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const char *what = argc > 3 ? argv[3] : "";
	bool effects = strcmp(what, "noises"), noises = strcmp(what, "effects");

	if (!nr || !max || max > MP_TRIAL_MAX_PAIRS || (*what && effects == noises)) {
		fputs("usage: trial-simulate TRIALS MAX-PAIRS [effects | noises]\n", stderr);
		return 2;
	}
	printf("%zu trials in each row, alpha %g, at most %u pairs\n\n", nr, MP_ALPHA, max);
	if (effects)
		print_all_effects(nr, max);
	if (noises)
		print_noises(nr, max);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
