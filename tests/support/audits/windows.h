// SPDX-License-Identifier: Apache-2.0
/*
 * windows - invented windows of an audited program, with a known effect and a kind of noise. Used by
 * tests of the reader, and by the tools that simulate audits.
 */
#ifndef TESTS_WINDOWS_H
#define TESTS_WINDOWS_H

#include "tests/support/audits/audit_simulate.h"
#include "libprof/note/audit_file.h"

struct windows {
	struct me_noise_source noise;
	double scale;  /* times the noise of a run: a window is shorter, so its noise is larger */
	double effect; /* log(time of A) - log(time of B) */
	double base;   /* ticks of a round */
};

/* The scale of each noise, unless a test chooses another. */
double windows_scale(enum me_noise noise);
void windows_init(struct windows *w, enum me_noise noise, double effect, uint64_t seed);
/* Both windows of a pair: the coin chooses which version is first; the numbers of rounds differ. */
void windows_pair(struct windows *w, uint32_t function, uint32_t thread, uint64_t pair,
		  struct mp_audit_record out[2]);

#endif
