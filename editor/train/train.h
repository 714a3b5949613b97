// SPDX-License-Identifier: Apache-2.0
/*
 * train - from a command to a faster file: sample the command, count the edges of the file, lay the
 * file out by the counts, and keep the result only if an audit finds it faster.
 */
#ifndef ME_TRAIN_H
#define ME_TRAIN_H

#include "editor/optimize/optimize.h"
#include "editor/refine/refine.h"
#include "editor/train/train_where.h"
#include "libprof/base/err.h"

struct me_train_options {
	const char *output;   /* the new version; with @only_profile, the database */
	bool only_profile;    /* ends when the counts are in the database: no version is made */
	char *const *command; /* argv, NULL-terminated */
	const char *file;     /* the file to optimise, which the command uses; NULL: its program */
	bool no_audit;
	double audit_seconds;	 /* at most; 0: two minutes, or the time of 16 pairs */
	const char *audit_pairs; /* as morph-audit's --pairs; NULL: as the seconds allow */
	const char *filter;	 /* as morph-audit's --filter; NULL: none */
	bool has_profile;	 /* optimize.db is the profile: nothing is counted (refine) */
	bool no_refine;		 /* the first version is the last */
	double budget_seconds;	 /* of refining; 0: two minutes, or the time of 48 runs */
	const char *trials_db;	 /* where trials are kept; NULL: nowhere */
	struct me_optimize_options optimize; /* layout, progress, threads; not its files */
	/* Called with the words for each step. */
	void (*say)(const char *step);
	/* Called with a warning before a step that takes long. */
	void (*warn)(const char *what);
};

/* The fate of the new version. */
enum me_train_end {
	ME_TRAIN_NOTHING,   /* none was made, or the audit rejected it */
	ME_TRAIN_KEPT,	    /* it is the output */
	ME_TRAIN_UNDECIDED, /* it lies beside the output, under the name in the report */
};

struct me_train_report {
	char *file;		    /* what was optimised */
	bool sampled;		    /* otherwise counters stand where loops suggest */
	char why[160];		    /* the reason, if it was not sampled */
	double plain_s, counting_s; /* processor time of the command, without and with counters */
	struct me_optimize_report counting, final;
	double plain_wall_s;   /* of the command, on the clock */
	double audit_limit_s;  /* limit of the audit */
	struct me_where where; /* where the command spent its time */
	enum me_train_end end;
	int audit;			 /* exit status of morph-audit; -1: there was none */
	char verdict[16];		 /* morph-audit's; "": none */
	char difference[160];		 /* how the output differs, if that is the verdict */
	double speedup, lowest, highest; /* its estimate and interval; 0: unknown */
	size_t nr_pairs;
	double level;		 /* of the interval, in per cent */
	struct me_verdict first; /* the audit of the first version */
	struct me_wishes known;	 /* its adjustments, by earlier trials */
	struct me_wishes chosen; /* of the result of refining */
	bool refined;		 /* @refinement was done */
	struct me_refine_report refinement;
	char *trials_lost; /* why trials could not be kept or read; NULL: nothing is lost */
	char *undecided;   /* ME_TRAIN_UNDECIDED: the new version's path */
	char *pairs;	   /* ME_TRAIN_UNDECIDED: the CSV file with the audit's pairs */
};

/* Probability that any of a training's audits finds a version faster or slower by chance. */
#define ME_TRAIN_ALPHA 0.01
/* The least number of pairs that can decide the first audit. */
size_t me_train_least_pairs(const struct me_train_options *options);

/* me_train_audit_seconds - time of an audit of @nr_pairs pairs if a run takes @run_s. */
double me_train_audit_seconds(size_t nr_pairs, double run_s);

/*
 * me_train - runs the command: once sampled, once plainly, once with counters, and as often as the
 * audits and the refinement need. With options->has_profile nothing is counted. The output of these
 * runs goes nowhere, and their input is empty.
 * Return: 0: the output is written; -ECANCELED: no version is faster; -EAGAIN: the audit could not
 * decide, and the version is kept under another name; -EBADE: the first version writes other output;
 * -EINTR: a signal came; -ESRCH: the file takes next to no time, but another file much (@report->where); otherwise as
 * me_optimize(). The output is written only with 0.
 * Ownership: me_train_report_fini(@report), always.
 */
int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err);
void me_train_report_fini(struct me_train_report *report);

#endif
