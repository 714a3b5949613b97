// SPDX-License-Identifier: Apache-2.0
/*
 * audit - is program B faster than program A on this machine, and does it behave the same?
 *
 * Decides which runs are made, in which order, when there are enough, and the verdict.
 * The statistics are in sequential_test, a single run in audit_stage, the wording in
 * audit_report. Called by morph_audit.c.
 */
#ifndef ME_AUDIT_H
#define ME_AUDIT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/audit/run/audit_hooks.h"
#include "editor/audit/run/audit_metric.h"
#include "libprof/audit/sequential_test.h"
#include "libprof/base/err.h"

enum me_audit_verdict {
	ME_AUDIT_FASTER,
	ME_AUDIT_SLOWER,
	ME_AUDIT_EQUAL,	    /* any difference is too small to matter */
	ME_AUDIT_UNDECIDED, /* the limit of pairs or time was reached first */
	ME_AUDIT_DIFFERS,   /* B does not behave like A */
};

/* How the two runs of a pair are made. */
enum me_pairing {
	ME_PAIRING_AUTO,  /* at the same time, unless that is impossible or would disturb them */
	ME_PAIRING_BOTH,  /* at the same time, on one CPU */
	ME_PAIRING_TURNS, /* one after the other */
};

/* Pairs of values, and the two files that they were measured with. */
struct me_audit_pairs {
	double *a, *b;
	size_t nr;
	char *metric, *unit;	 /* see me_metric_name(), me_metric_unit() */
	uint64_t a_hash, b_hash; /* of the files' contents */
};

struct me_audit_opts {
	const char *a, *b;
	const char *name;    /* file name of both copies; NULL: A's name */
	const char *parent;  /* directory in which the private copies are made */
	const char *at;	     /* NULL, or the path where both programs appear */
	const char *command; /* run this command instead of the program (needs @at); NULL: none */
	bool library; /* the command must use the file at @at, or LD_LIBRARY_PATH leads to it */
	/* A and B are servers, which this shell command drives; NULL: they are not. */
	const char *client;
	const char *ready; /* of a server, see audit_ready.h */
	struct me_hooks hooks;
	char *const *args; /* NULL-terminated, from argv[1] on; with @command from argv[0] on */
	char *const *envp;
	const char *stdin_path; /* NULL: empty input */
	const char *filter;
	char *const *files;
	bool with_stderr;
	int cpu; /* -1: any CPU */
	enum me_pairing pairing;
	const sigset_t *mask; /* see struct me_run_spec */

	struct me_metric metric;
	double alpha;	     /* probability of any false claim */
	double indifference; /* log ratio; a smaller difference does not matter; 0: each matters */
	double precision;    /* stop at an interval of at most +-precision; 0: do not wait for it */
	size_t warmup;	     /* pairs that are run but not counted; a watched run counts as one */
	size_t min_pairs, max_pairs;  /* no verdict before min, stop at max; both count @earlier */
	size_t pairs_despite_timeout; /* run this many even if @max_seconds have passed */
	double max_seconds;
	double timeout_seconds; /* of one run; 0: ten times A's longest run, plus 10 s */

	const struct me_audit_pairs *earlier; /* pairs of an audit to continue; NULL: none */

	/* Called after each run, with the pairs so far; may be NULL. */
	void (*progress)(const struct mp_seq *seq, void *arg);
	void *progress_arg;
};

struct me_audit_side {
	double *values; /* of the counted runs, in the order of the pairs, in me_metric_unit() */
	double median;
};

struct me_audit {
	enum me_audit_verdict verdict;
	struct mp_seq seq; /* of me_metric_ratio() */
	double lo, hi;	   /* confidence interval of the log ratio, may be infinite */
	struct me_audit_side a, b;
	size_t nr_pairs, nr_runs; /* pairs: including earlier ones; runs: of this audit only */
	size_t nr_earlier;	  /* pairs of the audit that this one continues */
	size_t nr_both;		  /* pairs of this audit whose runs went on at the same time */
	char turns_because[256];  /* why runs were made in turns; "": as asked, or they were not */
	uint64_t a_hash, b_hash;  /* of the two files' contents */
	double seconds;		  /* duration of this audit */
	size_t nr_killed;	  /* servers that SIGTERM did not end */
	int status;		  /* wait status, the same for both programs */
	uint64_t size_bytes;	  /* of the compared output, the same for both programs */
	char difference[384];	  /* ME_AUDIT_DIFFERS: the difference in words */
};

/*
 * me_audit_run - run the whole audit. Return: 0 with a verdict; -ECANCELED after
 * me_run_cancel(); -errno with @err set if A does not behave the same in each run, or a
 * program cannot be run.
 * Ownership: me_audit_fini(@audit), after an error too.
 */
int me_audit_run(const struct me_audit_opts *opts, struct me_audit *audit, struct mp_err *err);
void me_audit_fini(struct me_audit *audit);
/*
 * me_audit_compares_output - is standard output compared? It is not if the output holds the
 * measurement, unless there is a filter.
 */
bool me_audit_compares_output(const struct me_audit_opts *opts);

#endif
