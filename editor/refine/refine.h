// SPDX-License-Identifier: Apache-2.0
/*
 * refine - begins with an output that was audited, and looks for the fastest version within a
 * stated time. Counts propose and time decides, at the level of functions:
 *
 *	sample the original and the version, several runs each -> culprits (culprits.h)
 *	try each culprit in four ways, several at once (design.h, screen.h)
 *	make the version with the best way of each, and audit it against the best version so far
 *
 * These steps are one round; there are at most three. A version replaces the best one so far, at
 * first the original, only if an audit of the two shows it to be faster. So the result is never
 * slower than the original, except with the probability alpha that the caller allows: the first
 * audit may use half of it, and the audits of the rounds a quarter, an eighth and an eighth. Each
 * audit runs pairs of its own: samples choose versions, and never count as evidence that one is
 * faster.
 *
 * Called by the commands train and refine of morph-optimize. It opens no files: the runner does.
 */
#ifndef ME_REFINE_H
#define ME_REFINE_H

#include "editor/refine/culprits.h"
#include "editor/refine/design.h"
#include "editor/refine/runner.h"

/*
 * Most rounds. The aim is to repair a slow function within three; planted ones needed one each
 * (results.md, "Refining"). me_refine_round_alpha() divides the promise among this many audits:
 * more rounds would leave less alpha for each, so that each audit takes longer.
 */
#define ME_REFINE_ROUNDS 3

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
	struct me_wishes tried;	 /* not to be tried again */
	struct me_verdict first; /* of an audit of the original and this version */
	double alpha;		 /* the whole promise, of which half is spent */
	double budget_s;	 /* take about this long at most */
	double run_s, make_s;	 /* time of one run, and of making a version */
	uint64_t seed;		 /* of the order of runs */
};

struct me_refine_culprit {
	struct me_culprit found;
	char *name; /* "": not known */
	uint64_t vaddr;
	bool suspect; /* rose by no more than chance; tried since an audit found the version slower */
	bool moved;   /* false: it has no copy that could be adjusted */
	bool changed; /* @wish was chosen; otherwise it stays as it is */
	struct me_adjust wish;
};

/* One way for one function, as the rows of the design showed it. */
struct me_refine_tried {
	char *name;
	struct me_adjust wish;
	double ratio; /* times as fast as in the layout before, by the function's own samples */
	uint32_t nr_runs;
};

struct me_refine_round {
	struct me_refine_culprit *culprits; /* most harmful first */
	size_t nr_culprits;
	bool screened; /* false: no time for a screen; culprits stay where the original has them */
	struct me_refine_tried *tried;
	size_t nr_tried;
	size_t nr_runs;		   /* of sampling */
	struct me_wishes wishes;   /* of the version that was audited */
	char version[32];	   /* its name; "": none was made */
	bool against_original;	   /* otherwise against the best version so far */
	struct me_verdict verdict; /* of this audit; "": there was none */
};

struct me_refine_report {
	struct me_refine_round rounds[ME_REFINE_ROUNDS];
	size_t nr_rounds;
	char end[512]; /* why it ended */
	double seconds;
	char best[32]; /* name of the fastest version shown to be faster; "": the original */
	struct me_wishes wishes;    /* of @best */
	struct me_verdict estimate; /* of @best against the original */
	/* If @best is the original: the version that may be faster, and its audit; "": none. */
	char undecided[32];
	struct me_wishes undecided_wishes;
	struct me_verdict undecided_verdict;
};

/* Share of the promise @alpha for the audit before all rounds, and for that of @round, from 0. */
double me_refine_first_alpha(double alpha);
double me_refine_round_alpha(double alpha, size_t round);

/*
 * me_refine - Return: 0, also where nothing could be improved; -EINTR; -ENOMEM. Versions that cannot
 * be made or run end the refinement, not the program: @report->end says so. Ownership:
 * me_refine_report_fini(@report), always.
 */
int me_refine(const struct me_refine_options *options, struct me_refine_report *report,
	      struct mp_err *err);
void me_refine_report_fini(struct me_refine_report *report);

#endif
