// SPDX-License-Identifier: Apache-2.0
/*
 * choose - decides which source collects on this machine, and the sampling rate.
 *
 * Tries the live sources from best to worst and keeps why better ones were rejected. Measures
 * the cost of a sample and derives the rate from it. Called by morphd's main.
 */
#ifndef MD_CHOOSE_H
#define MD_CHOOSE_H

#include "daemon/morphd/defaults.h"
#include "daemon/source/source.h"

/*
 * md_choose_source - open the best source that works. (*@out)->choice gives the reasons.
 * Return: 0, or -errno with the error of the last source that was tried.
 */
int md_choose_source(const struct md_source_config *config, struct md_source **out,
		     struct mp_err *err);

/* Time that sampling takes from other programs, in nanoseconds. */
struct md_cost {
	uint32_t interrupt_ns; /* per sample, on the sampled CPU */
	uint32_t drain_ns;     /* per sample, in morphd */
	uint32_t wake_ns; /* per second and CPU, in morphd, independent of the number of samples */
	uint32_t ways_ns; /* per second and CPU, at most, for ways of branches; 0: none are counted */
};

/*
 * md_choose_measure - measure how long a sample interrupts a program. Runs the same loop
 * alternately with and without sampling, about 200 ms in total. @source: opened with this
 * process as its command, at MD_MEASURING_HZ; cannot be used afterwards. @ways: ways of branches are to
 * be counted. Return: 0 or -errno.
 */
int md_choose_measure(struct md_source *source, bool ways, struct md_cost *out, struct mp_err *err);

/*
 * md_choose_rate - the highest rate within bounds whose cost is below the budget. The rate is
 * prime, so that it does not stay in step with the kernel's own timers.
 */
uint32_t md_choose_rate(const struct md_cost *cost);

/* Return: share of each CPU's time that @rate_hz costs, in millionths. */
uint32_t md_choose_share_ppm(const struct md_cost *cost, uint32_t rate_hz);
/* Writes the rate and the reason for it, then @choice: why this source was chosen (may be ""). */
void md_choose_describe(const struct md_cost *cost, uint32_t rate_hz, const char *choice,
			char *text, size_t size);

#endif
