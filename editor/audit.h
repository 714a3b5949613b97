// SPDX-License-Identifier: Apache-2.0
/*
 * audit - is program B really faster than program A, here, and does it behave the same?
 *
 * Decides what is run in which order, when it is enough, and the verdict. The statistics are
 * sequential's, a single run is audit_run's, the words are audit_report's.
 */
#ifndef ME_AUDIT_H
#define ME_AUDIT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/sequential.h"
#include "libprof/err.h"

enum me_audit_metric {
	ME_METRIC_CPU,	/* user + system time, of the program and the children it waited for */
	ME_METRIC_USER, /* user time alone; many kernels only sample it */
	ME_METRIC_WALL,
};

enum me_audit_verdict {
	ME_AUDIT_FASTER,
	ME_AUDIT_SLOWER,
	ME_AUDIT_EQUAL,	    /* no difference that matters */
	ME_AUDIT_UNDECIDED, /* the limit of pairs or time came first */
	ME_AUDIT_DIFFERS,   /* B's behaviour is another */
};

/* The times of runs, in pairs, and which files these were. */
struct me_audit_pairs {
	uint64_t *a_ns, *b_ns;
	size_t nr;
	enum me_audit_metric metric;
	uint64_t a_hash, b_hash; /* of the contents of the files */
};

struct me_audit_opts {
	const char *a, *b;
	const char *name;    /* both are called so; NULL: A's name */
	const char *parent;  /* directory for the private copies */
	const char *at;	     /* NULL, or the path where both appear */
	const char *command; /* NULL: the program itself is run; else this is (needs @at) */
	char *const *args;   /* argv[1] and on, NULL-terminated; with @command from argv[0] on */
	char *const *envp;
	const char *stdin_path; /* NULL: nothing */
	const char *filter;
	char *const *files;
	bool with_stderr;
	int cpu;	      /* -1: any */
	const sigset_t *mask; /* see struct me_run_spec */

	enum me_audit_metric metric;
	double alpha;	     /* chance of any false claim */
	double indifference; /* log ratio below which a difference does not matter; 0: none */
	double precision;    /* go on until the interval is at most this far to each side; 0 */
	size_t warmup;	     /* pairs that are run and not counted, at least 1 */
	size_t min_pairs, max_pairs; /* no verdict before; the end after. Of all, @earlier too */
	size_t sure_pairs;	     /* so many are run even if @max_seconds are over */
	double max_seconds;
	double timeout_seconds; /* of one run; 0: ten times A's longest, and 10 s */

	const struct me_audit_pairs *earlier; /* of an audit that goes on; NULL: none */

	/* Called after each run, with the pairs so far; may be NULL. */
	void (*progress)(const struct me_seq *seq, void *arg);
	void *progress_arg;
};

struct me_audit_side {
	uint64_t *times_ns; /* of the counted runs, in the order of the pairs */
	double median_ns;
};

struct me_audit {
	enum me_audit_verdict verdict;
	struct me_seq seq; /* of log(A's time / B's time) */
	double lo, hi;	   /* interval of that, perhaps infinite */
	struct me_audit_side a, b;
	size_t nr_pairs, nr_runs; /* pairs: with the earlier ones; runs: of this audit */
	size_t nr_earlier;	  /* pairs of the audit that this one continues */
	uint64_t a_hash, b_hash;  /* of the contents of the two files */
	double seconds;		  /* that the audit took */
	int status;		  /* wait status that both ended with */
	uint64_t size_bytes;	  /* of the output that was the same */
	char difference[384];	  /* ME_AUDIT_DIFFERS: what differs */
};

/*
 * me_audit_run - the whole audit. Return: 0 with a verdict; -ECANCELED after me_run_cancel();
 * -errno with @err set if A cannot serve as a measure or B cannot be run.
 * Ownership: me_audit_fini() in every case.
 */
int me_audit_run(const struct me_audit_opts *opts, struct me_audit *audit, struct mp_err *err);
void me_audit_fini(struct me_audit *audit);

#endif
