// SPDX-License-Identifier: Apache-2.0
/*
 * runner - the operations that refine calls: make a version, sample it, audit it. program_runner.c
 * performs them with real programs; a test simulates them.
 */
#ifndef ME_RUNNER_H
#define ME_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/refine/wishes.h"
#include "libprof/base/err.h"

/* The results of one sampled run. */
struct me_sampled {
	uint64_t *counts; /* of each function of the original; the caller's, zero before */
	bool *moved; /* functions with samples in copies; the caller's, only ever set; may be NULL */
};

/* The result of an audit. */
struct me_verdict {
	char verdict[16];		 /* morph-audit's; "": there was no audit */
	char difference[160];		 /* how the output differs, if that is the verdict */
	double speedup, lowest, highest; /* estimate and interval; 0: unknown */
	double alpha;			 /* probability of any false claim */
	size_t nr_pairs;
};

/* Versions have names; NULL is the original. */
struct me_runner {
	void *arg;
	double (*now_s)(void *arg);
	/*
	 * Makes a verified version. Return: 0; -ENODATA: nothing is left to move; -errno.
	 */
	int (*make)(void *arg, const struct me_wishes *wishes, const char *name,
		    struct mp_err *err);
	/* Return: 0; -ENOTSUP: no samples can be taken here; -EBADE: it ends otherwise; -errno. */
	int (*sample)(void *arg, const char *name, struct me_sampled *out, struct mp_err *err);
	/* Is @b faster than @a? Takes about @limit_s at most. */
	int (*audit)(void *arg, const char *a, const char *b, double alpha, double limit_s,
		     struct me_verdict *out, struct mp_err *err);
	/* Prints a line of progress. */
	void (*say)(void *arg, const char *what);
};

#endif
