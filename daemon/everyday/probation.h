// SPDX-License-Identifier: Apache-2.0
/*
 * probation - is a program slower than before? Its own code's samples are compared with the samples that
 * libraries and the kernel have on its behalf. A new layout changes the first and not the second, so the
 * second stands for the work that was done. Decides by numbers alone; called by morph-worker.
 */
#ifndef MD_PROBATION_H
#define MD_PROBATION_H

#include <stdbool.h>
#include <stdint.h>

struct md_work_samples {
	uint64_t own, elsewhere; /* samples in the program's code; in libraries and the kernel */
};

enum md_probation_verdict {
	MD_PROBATION_UNKNOWN, /* too few samples to tell */
	MD_PROBATION_FINE,
	MD_PROBATION_SLOWER
};

/*
 * md_probation_judge - @ratio: time for the same work after / before. Slower: more than 1 + @worse_by, and
 * by more than chance explains (one in some ten thousand). Fewer than 1000 samples of a kind: unknown.
 */
enum md_probation_verdict md_probation_judge(const struct md_work_samples *before,
					     const struct md_work_samples *after, double worse_by,
					     double *ratio);

/* The directory of systemd-coredump. None of its settings names another one. */
#define MD_COREDUMPS "/var/lib/systemd/coredump"

/* Core files of the program @name in @dir, of systemd-coredump, written since @since_s. */
uint64_t md_probation_crashes(const char *dir, const char *name, int64_t since_s);

#endif
