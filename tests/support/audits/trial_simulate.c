// SPDX-License-Identifier: Apache-2.0
/*
 * trial_simulate - invents what users do in blocks of time, and tries versions on it; see
 * trial_simulate.h.
 */
#include "tests/support/audits/trial_simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "libprof/trial/trial_private.h"

#define NR_COUNTERS 4
#define WEIGHT	    1e-4 /* seconds for one count */
#define JITTER	    0.03 /* of each counter, as a part of it */

/*
 * The shares of the counters in each user's work, and what a second of each of them really costs.
 */
static const double shares[2][NR_COUNTERS] = {{0.4, 0.3, 0.2, 0.1}, {0.1, 0.2, 0.3, 0.4}};
static const double costs[NR_COUNTERS] = {1.3, 1.1, 0.9, 0.7};
/* ME_USE_KINDS: how many kinds of work, and the deviation of the log of what a second of each costs. */
#define NR_KINDS   8
#define KIND_COSTS 0.3

const char *me_use_name(enum me_use use)
{
	static const char *const names[ME_NR_USES] = {
		[ME_USE_STEADY] = "steady",	      [ME_USE_TENFOLD] = "tenfold",
		[ME_USE_SECOND] = "second user",      [ME_USE_CHANGING] = "changing mix",
		[ME_USE_ADVERSARY] = "past is known", [ME_USE_KINDS] = "kinds",
		[ME_USE_INSIDER] = "coin is known",
	};

	return use < ME_NR_USES ? names[use] : "unknown";
}

struct world {
	const struct me_trial_simulation *sim;
	struct me_noise_source noise;
	uint64_t random;     /* of work and coins, apart from the noise */
	double level;	     /* of the random walk */
	uint64_t ran_new[2]; /* pairs in which the new version ran in the first, second block */
	struct {
		double shares[NR_COUNTERS];
		double cost;
	} kinds[NR_KINDS];
	size_t kind;
};

static double uniform(struct world *w)
{
	return ((double)(me_next_random(&w->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(struct world *w)
{
	return sqrt(-2 * log(uniform(w))) * cos(2 * M_PI * uniform(w));
}

/* The second user's part of the work in block @at (0 or 1) of a pair, which runs @version. */
static double second_part(struct world *w, int at, int version)
{
	switch (w->sim->use) {
	case ME_USE_SECOND: return at ? 0.5 : 0;
	case ME_USE_CHANGING: w->level += 0.3 * gaussian(w); return 1 / (1 + exp(-w->level));
	case ME_USE_ADVERSARY: return w->ran_new[at] >= w->ran_new[!at] ? 0.5 : 0;
	case ME_USE_INSIDER: return version ? 0.5 : 0;
	case ME_USE_STEADY:
	case ME_USE_TENFOLD:
	case ME_USE_KINDS:
	case ME_NR_USES:
	default: return 0;
	}
}

static void make_kinds(struct world *w)
{
	for (size_t k = 0; k < NR_KINDS; k++) {
		double sum = 0;

		w->kinds[k].cost = exp(KIND_COSTS * gaussian(w));
		for (int i = 0; i < NR_COUNTERS; i++)
			sum += w->kinds[k].shares[i] = exp(gaussian(w));
		for (int i = 0; i < NR_COUNTERS; i++)
			w->kinds[k].shares[i] /= sum;
	}
}

static void run_block(struct world *w, int at, int version, struct mp_trial_block *out)
{
	double scale = w->sim->noise_scale > 0 ? w->sim->noise_scale : 1;
	double seconds = w->sim->use == ME_USE_TENFOLD ? exp(log(10) * uniform(w)) : 2;
	double part = second_part(w, at, version), cpu_s = 0;
	/* Some noise has no bounds, but times have. */
	double noise = fmax(-50, fmin(scale * me_noise_next(&w->noise), 50));

	*out = (struct mp_trial_block){.processes = 10};
	if (w->sim->use == ME_USE_KINDS && uniform(w) < 1.0 / 3)
		w->kind = (size_t)(uniform(w) * NR_KINDS);
	for (int i = 0; i < NR_COUNTERS; i++) {
		double share = w->sim->use == ME_USE_KINDS
				       ? w->kinds[w->kind].shares[i]
				       : (1 - part) * shares[0][i] + part * shares[1][i];
		double work = seconds * share * (1 + JITTER * (2 * uniform(w) - 1));

		out->counts[i] = (uint64_t)(work / WEIGHT);
		cpu_s += costs[i] * work;
	}
	if (w->sim->use == ME_USE_KINDS)
		cpu_s *= w->kinds[w->kind].cost;
	out->cpu_s = cpu_s * exp(noise - version * w->sim->effect);
}

static int run_trial(struct world *w, struct mp_trial *t)
{
	int rc = 0;

	while (!rc && mp_trial_verdict(t) == MP_TRIAL_RUNNING) {
		int first = mp_trial_draw(t, uniform(w) < 0.5);
		struct mp_trial_block blocks[2];

		run_block(w, 0, first, &blocks[first]);
		run_block(w, 1, !first, &blocks[!first]);
		w->ran_new[!first]++;
		rc = mp_trial_add_pair(t, blocks);
	}
	return rc;
}

static int one_trial(struct me_trial_simulation *sim, size_t nr, uint32_t *pairs)
{
	const struct mp_trial_config config = {.alpha = sim->alpha,
					       .nr_counters = NR_COUNTERS,
					       .weights = {WEIGHT, WEIGHT, WEIGHT, WEIGHT},
					       .max_pairs = sim->max_pairs};
	struct world w = {.sim = sim, .random = ~(sim->seed + nr * 0x632be59bd9b4e019)};
	struct mp_trial *t;
	int rc = mp_trial_new(&config, &t);

	if (sim->use == ME_USE_KINDS)
		make_kinds(&w);
	me_noise_init(&w.noise, sim->noise, sim->seed + nr * 0x632be59bd9b4e019);
	if (!rc)
		rc = run_trial(&w, t);
	if (!rc) {
		/* The bounds of mp_trial_result() would take more time than all the rest. */
		sim->nr[t->verdict]++;
		sim->nr_unlike += t->unlike >= 0;
		sim->nr_covered += mp_seq_holds(&t->speed, sim->effect);
		*pairs = t->nr;
	}
	mp_trial_free(t);
	return rc;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int me_trial_simulate(struct me_trial_simulation *sim)
{
	uint32_t *pairs = calloc(sim->nr_trials, sizeof(*pairs));
	int rc = pairs ? 0 : -ENOMEM;

	memset(sim->nr, 0, sizeof(sim->nr));
	sim->nr_unlike = sim->nr_covered = 0;
	sim->mean_pairs = 0;
	for (size_t i = 0; !rc && i < sim->nr_trials; i++) {
		rc = one_trial(sim, i, &pairs[i]);
		sim->mean_pairs += (double)pairs[i] / (double)sim->nr_trials;
	}
	if (!rc) {
		qsort(pairs, sim->nr_trials, sizeof(*pairs), compare);
		sim->median_pairs = pairs[sim->nr_trials / 2];
		sim->most_pairs = pairs[sim->nr_trials - 1];
	}
	free(pairs);
	return rc;
}
