// SPDX-License-Identifier: Apache-2.0
/* audit_simulate - generates the noise and runs the audits. The test is sequential_test.c,
 * unchanged. */
#include "tests/support/audits/audit_simulate.h"

#include <math.h>
#include <string.h>

#include "editor/base/mix.h"
#include "libprof/audit/sequential_test.h"

#define SIM_SD 0.01 /* standard deviation of most noises: 1 % */

const size_t me_sim_withins[ME_NR_WITHINS] = {8, 16, 32, 64};

const char *me_noise_name(enum me_noise noise)
{
	static const char *const names[ME_NR_NOISES] = {
		[ME_NOISE_GAUSSIAN] = "gaussian",  [ME_NOISE_HEAVY] = "heavy-tailed",
		[ME_NOISE_DRIFT] = "drifting",	   [ME_NOISE_CORRELATED] = "autocorrelated",
		[ME_NOISE_LOCKSTEP] = "lock-step", [ME_NOISE_BIMODAL] = "bimodal",
		[ME_NOISE_SKEWED] = "skewed",	   [ME_NOISE_TICKS] = "clock ticks",
	};

	return noise < ME_NR_NOISES ? names[noise] : "unknown";
}

/* Uniform in (0, 1), both ends excluded. */
static double sim_uniform(struct me_noise_source *src)
{
	return ((double)(me_next_random(&src->state) >> 11) + 0.5) / 9007199254740992.0;
}

static double sim_gaussian(struct me_noise_source *src)
{
	return sqrt(-2 * log(sim_uniform(src))) * cos(2 * M_PI * sim_uniform(src));
}

void me_noise_init(struct me_noise_source *src, enum me_noise noise, uint64_t seed)
{
	memset(src, 0, sizeof(*src));
	src->noise = noise;
	src->sd = SIM_SD;
	src->state = seed;
}

bool me_noise_coin(struct me_noise_source *src)
{
	return me_next_random(&src->state) >> 63;
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
	case ME_NOISE_SKEWED:
		return 0.2 * SIM_SD * sim_gaussian(src) +
		       (sim_uniform(src) < 0.1 ? -0.2 * log(sim_uniform(src)) : 0);
	case ME_NOISE_TICKS: return log(floor(25 * (1 + SIM_SD * sim_gaussian(src)) + 0.5));
	case ME_NOISE_GAUSSIAN:
	default: return src->sd * sim_gaussian(src);
	}
}

/* Simulate one audit, until its first claim. */
static int sim_audit(const struct me_simulation *sim, size_t audit, struct mp_seq *seq)
{
	struct me_noise_source src;
	int err = 0;

	me_noise_init(&src, sim->noise, sim->seed + audit * 0x632be59bd9b4e019);
	if (sim->sd > 0)
		src.sd = sim->sd;
	while (!err && seq->nr < sim->max_pairs && seq->verdict == MP_SEQ_UNDECIDED) {
		double first = me_noise_next(&src), second = me_noise_next(&src);
		/* the coin decides which of the two times is A's */
		double d = me_noise_coin(&src) ? first - second : second - first;

		err = mp_seq_add(seq, d + sim->effect);
	}
	return err;
}

int me_simulate(struct me_simulation *sim)
{
	size_t audit, pairs = 0;
	int err = 0;

	sim->nr_positive = sim->nr_negative = sim->nr_covered = 0;
	memset(sim->nr_within, 0, sizeof(sim->nr_within));
	for (audit = 0; !err && audit < sim->nr_audits; audit++) {
		struct mp_seq seq;
		bool right;

		mp_seq_init(&seq, sim->alpha);
		err = sim_audit(sim, audit, &seq);
		sim->nr_positive += seq.verdict == MP_SEQ_POSITIVE;
		sim->nr_negative += seq.verdict == MP_SEQ_NEGATIVE;
		sim->nr_covered += mp_seq_holds(&seq, sim->effect);
		right = (seq.verdict == MP_SEQ_POSITIVE && sim->effect > 0) ||
			(seq.verdict == MP_SEQ_NEGATIVE && sim->effect < 0);
		for (size_t i = 0; right && i < ME_NR_WITHINS; i++)
			sim->nr_within[i] += seq.decided_at <= me_sim_withins[i];
		pairs += seq.nr;
		mp_seq_fini(&seq);
	}
	sim->mean_pairs = audit ? (double)pairs / (double)audit : 0;
	return err;
}
