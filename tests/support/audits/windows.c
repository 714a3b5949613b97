// SPDX-License-Identifier: Apache-2.0
/* windows - invented windows; see windows.h. */
#include "tests/support/audits/windows.h"

#include <math.h>

double windows_scale(enum me_noise noise)
{
	switch (noise) {
	case ME_NOISE_GAUSSIAN: return 10; /* standard deviation 10 % */
	case ME_NOISE_HEAVY: return 5;
	case ME_NOISE_CORRELATED: return 3;
	case ME_NOISE_DRIFT:
	case ME_NOISE_LOCKSTEP:
	case ME_NOISE_BIMODAL:
	case ME_NOISE_SKEWED:
	case ME_NOISE_TICKS:
	default: return 1;
	}
}

void windows_init(struct windows *w, enum me_noise noise, double effect, uint64_t seed)
{
	me_noise_init(&w->noise, noise, seed);
	w->scale = windows_scale(noise);
	w->effect = effect;
	w->base = 1000;
}

/* From 1 to 8 rounds. */
static uint64_t draw_rounds(struct windows *w)
{
	uint64_t rounds = 1;

	for (int bit = 0; bit < 3; bit++)
		rounds += (uint64_t)me_noise_coin(&w->noise) << bit;
	return rounds;
}

void windows_pair(struct windows *w, uint32_t function, uint32_t thread, uint64_t pair,
		  struct mp_audit_record out[2])
{
	bool b_first = me_noise_coin(&w->noise);

	for (int i = 0; i < 2; i++) {
		uint8_t version = (i == 0) == b_first ? MP_AUDIT_B : MP_AUDIT_A;
		double log_ticks = log(w->base) + w->scale * me_noise_next(&w->noise) -
				   (version == MP_AUDIT_B ? w->effect : 0);
		uint64_t rounds = draw_rounds(w);

		/* A Cauchy number may be anything; a clock counts whole ticks. */
		log_ticks = fmin(fmax(log_ticks, 0), 30);
		out[i] = (struct mp_audit_record){
			.pair = pair,
			.ticks = (uint64_t)ceil(exp(log_ticks) * (double)rounds),
			.rounds = rounds,
			.function = function,
			.thread = thread,
			.version = version,
			.second = (uint8_t)i,
			.fate = MP_AUDIT_TIMED,
		};
	}
}
