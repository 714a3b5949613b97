// SPDX-License-Identifier: Apache-2.0
/*
 * call_samples - takes the calls that programs with a clock of calls sampled out of their file. Called by
 * morphd's main and the pipeline.
 *
 * A thread reads the records since its last turn. A record that was overwritten, or whose program had
 * not finished it, is lost: it came too late, and no later one takes its place. The addresses are
 * those of a process, which the pipeline knows by its number; both ends of a call must be in known
 * modules, the called function in an output that is believed. The file is read and written, never mapped,
 * because any user may have made it.
 */
#ifndef MD_CALL_SAMPLES_H
#define MD_CALL_SAMPLES_H

#include <stdint.h>

#include "daemon/attribute/attribute.h"
#include "libprof/base/err.h"

struct md_call_samples_config {
	const char *path; /* of the file, which may not exist yet */
	uint32_t period;  /* mean number of calls between two samples */
};

#define MD_CALL_SAMPLES_PERIOD 1000

struct md_call_samples;

/*
 * Makes the file, or takes one that exists, and starts the clocks. Return: 0, -EINVAL (not a file of
 * calls), -ENOMEM, -errno. Ownership: md_call_samples_stop().
 */
int md_call_samples_start(const struct md_call_samples_config *config, struct md_call_samples **out,
			  struct mp_err *err);
/*
 * md_call_samples_take - add the calls since the last turn to @at and its ledger. Calls of processes that
 * are not known yet wait for the next turn. @last: stop the clocks; what is not known is lost.
 * Return: 0, -ENOMEM: the rest is kept; call again after a flush.
 */
int md_call_samples_take(struct md_call_samples *calls, struct md_attribute *at, bool last);
/* Return: a message for the user at the end, or NULL. */
const char *md_call_samples_remark(struct md_call_samples *calls);
/* Accepts NULL. */
void md_call_samples_stop(struct md_call_samples *calls);

#endif
