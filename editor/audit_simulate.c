// SPDX-License-Identifier: Apache-2.0
/*
 * audit_simulate - audits of invented run times, to check what the sequential test promises.
 *
 * Decides what noise is like; the test under scrutiny is sequential.c, unchanged.
 */
#include "editor/audit_simulate.h"

#include <math.h>
#include <string.h>

#include "editor/sequential.h"

#define SIM_SD 0.01 /* of most noises: 1 % */

const char *me_noise_name(enum me_noise noise)
{
	static const char *const names[ME_NR_NOISES] = {
		[ME_NOISE_GAUSSIAN] = "gaussian",  [ME_NOISE_HEAVY] = "heavy-tailed",
		[ME_NOISE_DRIFT] = "drifting",	   [ME_NOISE_CORRELATED] = "autocorrelated",
		[ME_NOISE_LOCKSTEP] = "lock-step", [ME_NOISE_BIMODAL] = "bimodal",
	};

	return noise < ME_NR_NOISES ? names[noise] : "unknown";
}

/* splitmix64: small, and good enough for coins and noise. */
static uint64_t sim_random(struct me_noise_source *src)
{
	uint64_t z = src->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Uniform in (0, 1), both ends excluded. */
static double sim_uniform(struct me_noise_source *src)
{
	return ((double)(sim_random(src) >> 11) + 0.5) / 9007199254740992.0;
}

static double sim_gaussian(struct me_noise_source *src)
{
	return sqrt(-2 * log(sim_uniform(src))) * cos(2 * M_PI * sim_uniform(src));
}

void me_noise_init(struct me_noise_source *src, enum me_noise noise, uint64_t seed)
{
	memset(src, 0, sizeof(*src));
	src->noise = noise;
	src->state = seed;
}

bool me_noise_coin(struct me_noise_source *src)
{
	return sim_random(src) >> 63;
}

double me_noise_next(struct me_noise_source *src)
{
	size_t n = src->nr++;

	switch (src->noise) {
	case ME_NOISE_HEAVY: return SIM_SD * tan(M_PI * (sim_uniform(src) - 0.5));
	case ME_NOISE_DRIFT:
		/* up for 100 runs, down for 100 */
		return 0.001 * (double)(n % 200 < 100 ? n % 200 : 200 - n % 200) +
		       0.2 * SIM_SD * sim_gaussian(src);
	case ME_NOISE_CORRELATED:
		src->level = 0.95 * src->level + SIM_SD * sim_gaussian(src);
		return src->level;
	case ME_NOISE_LOCKSTEP: return 0.05 * (double)(n % 2) + 0.1 * SIM_SD * sim_gaussian(src);
	case ME_NOISE_BIMODAL:
		if (sim_uniform(src) < 0.1)
			src->slow = !src->slow;
		return 0.1 * src->slow + 0.1 * SIM_SD * sim_gaussian(src);
	case ME_NOISE_GAUSSIAN:
	default: return SIM_SD * sim_gaussian(src);
	}
}

int me_simulate(struct me_simulation *sim)
{
	size_t audit, pairs = 0;

	sim->nr_positive = sim->nr_negative = sim->nr_covered = 0;
	for (audit = 0; audit < sim->nr_audits; audit++) {
		struct me_noise_source src;
		struct me_seq seq;

		me_noise_init(&src, sim->noise, sim->seed + audit * 0x632be59bd9b4e019);
		me_seq_init(&seq, sim->alpha);
		while (seq.nr < sim->max_pairs && seq.verdict == ME_SEQ_UNDECIDED) {
			double first = me_noise_next(&src), second = me_noise_next(&src);
			/* the coin decides which of the two times was A's */
			double d = me_noise_coin(&src) ? first - second : second - first;
			int err = me_seq_add(&seq, d + sim->effect);

			if (err) {
				me_seq_fini(&seq);
				return err;
			}
		}
		sim->nr_positive += seq.verdict == ME_SEQ_POSITIVE;
		sim->nr_negative += seq.verdict == ME_SEQ_NEGATIVE;
		sim->nr_covered += me_seq_holds(&seq, sim->effect);
		pairs += seq.nr;
		me_seq_fini(&seq);
	}
	sim->mean_pairs = sim->nr_audits ? (double)pairs / (double)sim->nr_audits : 0;
	return 0;
}
