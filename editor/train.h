// SPDX-License-Identifier: Apache-2.0
/*
 * train - the whole way from a command to a faster file: sample it, count its edges where they run,
 * lay the file out by what was counted, and keep that only if an audit finds it faster.
 */
#ifndef ME_TRAIN_H
#define ME_TRAIN_H

#include "editor/optimize.h"
#include "editor/train_where.h"
#include "libprof/err.h"

struct me_train_options {
	const char *output;
	char *const *command; /* argv, NULL-terminated */
	const char *file;     /* what to optimise, that the command uses; NULL: its program */
	bool no_audit;
	double audit_seconds;	 /* at most; 0: two minutes, or what 16 pairs need */
	const char *audit_pairs; /* as morph-audit's --pairs; NULL: as the seconds allow */
	struct me_optimize_options optimize; /* layout, progress, threads; files are ours */
	/* Called with the words for each step. */
	void (*say)(const char *step);
	/* Called with what the user had better know before a step that takes long. */
	void (*warn)(const char *what);
};

/* What became of the new version. */
enum me_train_end {
	ME_TRAIN_NOTHING,   /* there is none, or the audit was against it */
	ME_TRAIN_KEPT,	    /* it is the output */
	ME_TRAIN_UNDECIDED, /* it is beside the output, by the name in the report */
};

struct me_train_report {
	char *file;		    /* what was optimised */
	bool sampled;		    /* else counters stand where loops suggest */
	char why[160];		    /* it was not */
	double plain_s, counting_s; /* processor time of the command, without and with counters */
	struct me_optimize_report counting, final;
	double plain_wall_s;   /* of the command, on the clock */
	double audit_limit_s;  /* that the audit was given */
	struct me_where where; /* the command's time was spent */
	enum me_train_end end;
	int audit;			 /* exit status of morph-audit; -1: there was none */
	char verdict[16];		 /* morph-audit's; "": none */
	double speedup, lowest, highest; /* its estimate and interval; 0: unknown */
	size_t nr_pairs;
	double level;	 /* of the interval, in per cent */
	char *undecided; /* ME_TRAIN_UNDECIDED: the new version's path */
	char *pairs;	 /* and that of the CSV file with the audit's pairs */
};

/* Fewer pairs than these cannot decide (at the alpha that morph-audit has by default). */
#define ME_TRAIN_LEAST_PAIRS 8

/* me_train_audit_seconds - what an audit of so many pairs takes, if a run takes @run_s. */
double me_train_audit_seconds(size_t nr_pairs, double run_s);

/*
 * me_train - runs the command: once while it is sampled, once plainly, once with counters, and as often
 * as the audit likes. Its output goes nowhere, there is nothing to read for it.
 * Return: 0 written; -ECANCELED the new version is not faster; -EAGAIN the audit could not decide, and
 * the new version is kept under another name; -EBADE it writes something else; -ESRCH next to no time is
 * spent in the file, but much in another one (@report->where); else as me_optimize(). The output
 * itself is written only with 0.
 * Ownership: me_train_report_fini(@report), always.
 */
int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err);
void me_train_report_fini(struct me_train_report *report);

#endif
