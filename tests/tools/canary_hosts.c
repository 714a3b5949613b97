// SPDX-License-Identifier: Apache-2.0
/*
 * canary-hosts ROLL-OUTS HOSTS DAYS PAIRS PERCENT [SEED] - simulates the audits of hosts that have a build which
 * is PERCENT faster (below 0: slower) than the original. Prints a line for each roll-out, host and day: both
 * logarithms of the audit's e-values by then. Each host makes PAIRS pairs of runs a day, on which the real test
 * bets. A pair's noise has heavy tails: Student's t with three degrees of freedom, times 5 %.
 * For scripts/bench/bench-canary.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/audit/sequential_test.h"

#define NOISE 0.05

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static double heavy_tailed(void)
{
	double squares = 0;

	for (int i = 0; i < 3; i++) {
		double x = normal();

		squares += x * x;
	}
	return normal() / sqrt(squares / 3);
}

static double log_capital(const struct mp_seq *seq, const double *capital)
{
	return fmin(fmax(log(mp_seq_pool_capital(seq, capital)), -700), 700);
}

static int audit(long rollout, long host, long days, long pairs, double effect)
{
	struct mp_seq seq;

	mp_seq_init(&seq, 0.01);
	for (long day = 1; day <= days; day++) {
		for (long i = 0; i < pairs; i++)
			if (mp_seq_add(&seq, effect + NOISE * heavy_tailed()))
				return 1;
		printf("%ld\t%ld\t%ld\t%.4f\t%.4f\n", rollout, host, day, log_capital(&seq, seq.up),
		       log_capital(&seq, seq.down));
	}
	mp_seq_fini(&seq);
	return 0;
}

int main(int argc, char **argv)
{
	long rollouts, hosts, days, pairs;
	double effect;

	if (argc < 6 || argc > 7) {
		fprintf(stderr, "usage: canary-hosts ROLL-OUTS HOSTS DAYS PAIRS PERCENT [SEED]\n");
		return 2;
	}
	rollouts = atol(argv[1]);
	hosts = atol(argv[2]);
	days = atol(argv[3]);
	pairs = atol(argv[4]);
	effect = log1p(atof(argv[5]) / 100);
	state = argc > 6 ? strtoull(argv[6], NULL, 10) : 1;
	for (long rollout = 1; rollout <= rollouts; rollout++)
		for (long host = 1; host <= hosts; host++)
			if (audit(rollout, host, days, pairs, effect))
				return 1;
	return fflush(stdout) ? 1 : 0;
}
