// SPDX-License-Identifier: Apache-2.0
/*
 * train - the whole way from a command to a faster file: sample it, count its edges where they run,
 * lay the file out by what was counted, and keep that only if an audit finds it faster.
 */
#ifndef ME_TRAIN_H
#define ME_TRAIN_H

#include "editor/optimize.h"
#include "libprof/err.h"

struct me_train_options {
	const char *output;
	char *const *command; /* argv, NULL-terminated */
	const char *file;     /* what to optimise, that the command uses; NULL: its program */
	bool no_audit;
	double audit_seconds;		     /* at most */
	struct me_optimize_options optimize; /* layout, progress, threads; files are ours */
	/* Called with the words for each step. */
	void (*say)(const char *step);
};

struct me_train_report {
	char *file;		    /* what was optimised */
	bool sampled;		    /* else counters stand where loops suggest */
	char why[160];		    /* it was not */
	double plain_s, counting_s; /* processor time of the command, without and with counters */
	struct me_optimize_report counting, final;
	int audit; /* exit status of morph-audit; -1: there was none */
};

/*
 * me_train - runs the command: once while it is sampled, once plainly, once with counters, and as often
 * as the audit likes. Its output goes nowhere, there is nothing to read for it.
 * Return: 0 written; -ECANCELED the new version is not faster; -EBADE it writes something else; else
 * as me_optimize(). Nothing is written but with 0.
 * Ownership: me_train_report_fini(@report), always.
 */
int me_train(const struct me_train_options *options, struct me_train_report *report,
	     struct mp_err *err);
void me_train_report_fini(struct me_train_report *report);

#endif
