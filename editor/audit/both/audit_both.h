// SPDX-License-Identifier: Apache-2.0
/*
 * audit_both - runs both versions at the same time on one CPU.
 *
 * The kernel gives the CPU to each of them in turn, for some milliseconds. Noise that lasts longer,
 * such as other load, a slower clock, or other virtual machines on the host, therefore slows down
 * both runs alike and cancels in the ratio of their CPU times. Wall times are meaningless here,
 * since the runs share a CPU. Decides nothing about the runs. Called by audit_stage.
 */
#ifndef ME_AUDIT_BOTH_H
#define ME_AUDIT_BOTH_H

#include <stdbool.h>

#include "editor/audit/run/audit_run.h"
#include "editor/audit/run/audit_slot.h"
#include "libprof/base/err.h"

struct me_both {
	const struct me_slot *slot; /* me_slot_put_beside() has put both copies there */
	const struct me_run_spec
		*spec; /* the same for both; a @cpu of -1 lets me_both_run() choose */
	bool library;  /* each run must open its copy */
};

/*
 * me_both_run - start the copies 0 and 1, in this order, each in a process with a mount namespace
 * of its own, and wait for both. Return: 0 with @runs; -ECANCELED after me_run_cancel(); -errno
 * with @err set. -EPERM and the like: namespaces are not allowed here.
 */
int me_both_run(const struct me_both *both, struct me_run runs[2], struct mp_err *err);

#endif
