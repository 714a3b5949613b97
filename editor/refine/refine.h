// SPDX-License-Identifier: Apache-2.0
/*
 * refine - begins with an output that was audited, and looks for functions that became slower in it:
 *
 *	sample the original and the version, several runs each -> culprits (culprits.h)
 *	make the version again, with these functions left where the original has them
 *	audit it against the version before if that is faster than the original, else against the original
 *
 * A version replaces the best one so far, at first the original, only if an audit of the two shows it
 * to be faster. So the result is never slower than the original, except with the probability alpha
 * that the caller allows: each of the two audits may use half of it. Each audit runs pairs of its own:
 * samples choose functions, and never count as evidence that a version is faster.
 *
 * Called by the commands train and refine of morph-optimize. It opens no files: the runner does.
 */
#ifndef ME_REFINE_H
#define ME_REFINE_H

#include "editor/refine/culprits.h"
#include "editor/refine/runner.h"

/* Most functions that are left alone without proof, since the whole became slower. */
#define ME_REFINE_SUSPECTS 5

struct me_refine_func {
	const char *name;
	uint64_t vaddr;
};

struct me_refine_options {
	const struct me_runner *runner;
	const struct me_refine_func *funcs; /* of the original */
	size_t nr_funcs;
	const char *version;	 /* the name of the version to begin with */
	struct me_wishes wishes; /* its adjustments */
	struct me_verdict first; /* of an audit of the original and this version */
	double alpha;		 /* the whole promise, of which half is spent */
	double budget_s;	 /* take about this long at most */
	double run_s;		 /* time of one run */
	uint64_t seed;		 /* of the order of runs */
};

struct me_refine_culprit {
	struct me_culprit found;
	char *name; /* "": not known */
	uint64_t vaddr;
	bool suspect; /* rose by no more than chance; named since an audit found the version slower */
	bool moved;   /* false: it has no copy that could be left out */
};

struct me_refine_report {
	struct me_refine_culprit *culprits; /* most harmful first */
	size_t nr_culprits;
	size_t nr_runs;		 /* of sampling */
	struct me_wishes wishes; /* of the version without the culprits */
	bool against_original; /* it was audited against this, otherwise against the first version */
	struct me_verdict verdict; /* of this audit; "": there was none */
	char end[512];		   /* why it ended */
	double seconds;
	/* The fastest version that was shown to be faster than the original. */
	enum me_refine_best {
		ME_REFINE_ORIGINAL,
		ME_REFINE_FIRST,
		ME_REFINE_SECOND,
	} best;
	struct me_verdict estimate; /* of @best against the original */
	/* If @best is the original: the version that may be faster, and its audit. */
	enum me_refine_best undecided; /* ME_REFINE_ORIGINAL: none */
	struct me_verdict undecided_verdict;
};

/* The version without the culprits. */
#define ME_REFINE_SECOND_NAME "refined"

/* Share of the promise @alpha for each of the two audits. */
double me_refine_alpha(double alpha);

/*
 * me_refine - Return: 0, also where nothing could be improved; -EINTR; -ENOMEM. Versions that cannot
 * be made or run end the refinement, not the program: @report->end says so. Ownership:
 * me_refine_report_fini(@report), always.
 */
int me_refine(const struct me_refine_options *options, struct me_refine_report *report,
	      struct mp_err *err);
void me_refine_report_fini(struct me_refine_report *report);

#endif
