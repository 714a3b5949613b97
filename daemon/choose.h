// SPDX-License-Identifier: Apache-2.0
/*
 * choose - which source collects on this machine, and how often it takes a sample.
 *
 * Tries the live sources from best to worst, keeps why the better ones were not taken;
 * measures what a sample costs here and chooses the rate from it. Called by morphd.
 */
#ifndef MD_CHOOSE_H
#define MD_CHOOSE_H

#include "daemon/source.h"

/*
 * md_choose_source - open the best source that works. The reasons are in (*@out)->choice.
 * Return: 0, or -errno with what kept the last one from working.
 */
int md_choose_source(const struct md_source_config *config, struct md_source **out,
		     struct mp_err *err);

/* What sampling takes away from everybody else, in nanoseconds. */
struct md_cost {
	uint32_t interrupt_ns; /* of each sample, at the CPU that is sampled */
	uint32_t drain_ns;     /* of each sample, in morphd */
	uint32_t wake_ns; /* of each second and CPU, in morphd, however few samples there are */
};

#define MD_MEASURING_HZ 4000

/*
 * md_choose_measure - how long a sample interrupts whoever runs: the same loop is run with and
 * without sampling in turn, some 200 ms in all. @source: opened with this process as its
 * command, at MD_MEASURING_HZ; of no use afterwards. Return: 0 or -errno.
 */
int md_choose_measure(struct md_source *source, struct md_cost *out, struct mp_err *err);

/*
 * md_choose_rate - the highest rate whose cost is below the budget, within bounds, and prime:
 * the kernel's own timers do not run in step with it.
 */
uint32_t md_choose_rate(const struct md_cost *cost);

/* What @rate_hz takes of each CPU, in millionths. */
uint32_t md_choose_share_ppm(const struct md_cost *cost, uint32_t rate_hz);
/* The rate and why it is that, with why the source is that one (@choice, may be ""). */
void md_choose_say(const struct md_cost *cost, uint32_t rate_hz, const char *choice, char *text,
		   size_t size);

#endif
