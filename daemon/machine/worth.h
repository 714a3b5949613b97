// SPDX-License-Identifier: Apache-2.0
/*
 * worth - what a new layout of a module is expected to gain, before anything is written.
 *
 *	counts -> md_saving: taken branches that a layout saves
 *	audits -> md_effect: what a saved taken branch was worth in time
 *	both and the module's share of the machine -> md_worth: percent of the machine, with limits
 *
 * The estimate orders the work; an audit decides. It knows taken branches only. The misses that a
 * denser layout saves in caches are part of the measured effect, as an average. Plain arithmetic,
 * no files. Called by machine, for the commands of morph.
 */
#ifndef MD_WORTH_H
#define MD_WORTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/defaults.h"
#include "libprof/infer/counts.h"

/* Fewer samples say too little about single branches. As morph-optimize --min-samples. */
#define MD_WORTH_MIN_SAMPLES MP_MIN_SAMPLES

/* The saving that a layout of one module can give. */
struct md_saving {
	uint64_t nr_samples; /* in blocks */
	double movable;	     /* share of the executed instructions that lies in movable functions */
	/* shares of the executed instructions in functions with each problem */
	double left_alone[MP_NR_PROBLEMS];
	double taken; /* taken branches per 1,000 executed instructions */
	double saved; /* of these: expected to be saved */
};

/*
 * md_saving_compute - chains the blocks of each function that is understood along their likeliest
 * edges (Pettis and Hansen 1990), and compares taken branches before and after with doubted
 * counts (libprof/infer/counts_doubt.h). Morph-optimize's layout does more, so this is no
 * promise, and the prediction that it prints is better. Return: 0, -ENOMEM.
 */
int md_saving_compute(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct mp_profile *profile, struct md_saving *out);

/* A version that was measured. */
struct md_effect_point {
	double saved; /* taken branches per 1,000 executed instructions */
	double gain;  /* percent of the program's time */
};

/* How a change in taken branches becomes a change in time. */
struct md_effect {
	double slope;	 /* percent of time for each saved taken branch in 1,000 instructions */
	double slope_sd; /* its standard deviation */
	double spread;	 /* standard deviation of one program around the line, percent of time */
	size_t nr_here;	 /* audits of this machine in it */
};

/*
 * md_effect_fit - a line through the origin, fitted to audits of this machine. The programs of
 * Documentation/lab/results.md (worth_prior.h) are the prior: their slope, with a standard deviation
 * of the same size, since taken branches may cost another processor nothing, or twice as much. Each
 * audit makes the slope more certain.
 */
void md_effect_fit(const struct md_effect_point *here, size_t nr, struct md_effect *out);

/* Percent of the machine's time. Nine of ten gains are expected between least and most. */
struct md_worth {
	double gain, least, most;
};

/* @share: the module's share of the machine's samples, 0 to 1. */
struct md_worth md_worth_compute(const struct md_saving *saving, const struct md_effect *effect,
				 double share);

#endif
