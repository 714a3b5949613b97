// SPDX-License-Identifier: Apache-2.0
/*
 * counts_private - what profiles and paths tell about the counts of a module, for counts.c.
 * These functions read; they infer nothing.
 */
#ifndef MP_COUNTS_PRIVATE_H
#define MP_COUNTS_PRIVATE_H

#include <stdint.h>

#include "libprof/infer/counts.h"
#include "libprof/infer/path_evidence.h"

/* Computes how often each block was seen: samples in it, and transfers into it and out of it. */
void mp_counts_fill_witnesses(const struct mp_cfg *cfg, const struct mp_profile *profile,
			      uint64_t *witnesses);
/* Observed transfers per execution, where executions are in units of the counts from samples. */
double mp_counts_transfer_weight(const struct mp_cfg *cfg, const struct mp_profile *profile,
				 const struct mp_counts *counts);
/* Reports per execution, of the blocks that a polled program reported. */
double mp_counts_reported_weight(const struct mp_cfg *cfg, const struct mp_path_evidence *paths,
				 const struct mp_counts *counts);
/*
 * Visits of each block: the larger of the paths in and the paths out. A path that begins or
 * ends in the block counts on one side only. Return: the caller's to free; NULL: no memory.
 */
uint64_t *mp_counts_visits_new(const struct mp_cfg *cfg, const struct mp_path_evidence *paths);

#endif
