// SPDX-License-Identifier: Apache-2.0
/* refine - names functions that became slower, and leaves them where they were; see refine.h. */
#include "editor/refine/refine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/audit/sequential_test.h"

/*
 * Least and most runs of each version from which culprits are named. The upper limit is an
 * assumption: with twenty runs Student's t has 18 degrees of freedom, and further runs hardly lower
 * the value that a test needs. They would find smaller rises, and leave less time for the audit.
 */
#define RUNS_MIN ME_CULPRIT_LEAST_RUNS
#define RUNS_MAX 10
/* Share of the time that naming culprits may take. Assumption: the rest is for the audit. */
#define SAMPLING_SHARE 0.25
/*
 * Level of the test for culprits. If no function became slower, at most 1 % of refinements name a
 * function (results.md, "Refining"; test_culprits simulates it).
 */
#define CULPRIT_ALPHA 0.01

struct engine {
	const struct me_refine_options *options;
	struct me_refine_report *report;
	struct mp_err *err;
	double start_s;
	double run_s; /* of one run, as the latest ones took */
	uint64_t random;
};

double me_refine_alpha(double alpha)
{
	return alpha / 2;
}

static double now_s(const struct engine *e)
{
	return e->options->runner->now_s(e->options->runner->arg);
}

static double left_s(const struct engine *e)
{
	return e->options->budget_s - (now_s(e) - e->start_s);
}

static int no_memory(struct engine *e)
{
	return mp_err_set(e->err, ENOMEM, "out of memory");
}

static bool is(const struct me_verdict *verdict, const char *word)
{
	return !strcmp(verdict->verdict, word);
}

/* Ends the refinement for a reason. Return: 1, so that no further step begins. */
static int end(struct engine *e, const char *why)
{
	snprintf(e->report->end, sizeof(e->report->end), "%s", why);
	return 1;
}

/* A version could not be made, sampled or audited. */
static int end_by(struct engine *e, int rc)
{
	switch (rc) {
	case -EINTR:
	case -ENOMEM: return rc;
	case -ENODATA: return end(e, "nothing is left to move");
	case -ENOTSUP: return end(e, "no samples can be taken here");
	case -EBADE: return end(e, "a version ended in another way than the original");
	default:
		snprintf(e->report->end, sizeof(e->report->end),
			 "a version could not be made or run%s%.400s", e->err->msg[0] ? ": " : "",
			 e->err->msg);
		return 1;
	}
}

/* ---- culprits ------------------------------------------------------------------------------ */

/* The runs of both versions. */
struct runs {
	size_t nr;
	bool changed[2 * RUNS_MAX];
	uint64_t *counts;
	bool *moved;
};

/* A reproducible permutation of @nr numbers. */
static void shuffle(uint64_t *state, unsigned int *order, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		order[i] = i;
	for (unsigned int i = nr; i > 1; i--) {
		unsigned int k, swap;

		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		k = (unsigned int)(*state % i);
		swap = order[i - 1];
		order[i - 1] = order[k];
		order[k] = swap;
	}
}

static int sample_one(struct engine *e, struct runs *runs, unsigned int i)
{
	const struct me_runner *runner = e->options->runner;
	struct me_sampled sampled = {.counts = runs->counts + i * e->options->nr_funcs};

	if (runs->changed[i])
		sampled.moved = runs->moved;
	return runner->sample(runner->arg, runs->changed[i] ? e->options->version : NULL, &sampled,
			      e->err);
}

/* Samples both versions, in random order. */
static int sample_both(struct engine *e, struct runs *runs)
{
	const struct me_runner *runner = e->options->runner;
	unsigned int order[2 * RUNS_MAX];
	double began_s = now_s(e);
	int rc = 0;

	for (unsigned int i = 0; i < runs->nr; i++)
		runs->changed[i] = i % 2;
	shuffle(&e->random, order, (unsigned int)runs->nr);
	for (unsigned int i = 0; i < runs->nr && !rc; i++) {
		char what[80];

		snprintf(what, sizeof(what), "sampling both versions: run %u of %zu", i + 1,
			 runs->nr);
		runner->say(runner->arg, what);
		rc = sample_one(e, runs, order[i]);
	}
	e->run_s = (now_s(e) - began_s) / (double)runs->nr;
	return rc;
}

static int note_culprits(struct engine *e, const struct me_culprit *found, size_t nr,
			 const bool *moved)
{
	struct me_refine_report *r = e->report;

	r->culprits = calloc(nr + 1, sizeof(*r->culprits));
	if (!r->culprits)
		return no_memory(e);
	for (size_t i = 0; i < nr; i++) {
		r->culprits[i] = (struct me_refine_culprit){
			.found = found[i],
			.name = strdup(e->options->funcs[found[i].func].name),
			.vaddr = e->options->funcs[found[i].func].vaddr,
			.moved = moved[found[i].func],
			.suspect = found[i].p > CULPRIT_ALPHA,
		};
		if (!r->culprits[i].name)
			return no_memory(e);
		r->nr_culprits++;
	}
	return 0;
}

/* Number of runs of each version for which there is time; 0: fewer than RUNS_MIN. */
static size_t affordable_runs(const struct engine *e)
{
	double nr = SAMPLING_SHARE * left_s(e) / (2 * e->run_s);

	if (nr > RUNS_MAX)
		return RUNS_MAX;
	/* Without culprits a refinement does nothing, so RUNS_MIN may take twice the share. */
	return nr >= RUNS_MIN ? (size_t)nr : nr * 2 >= RUNS_MIN ? RUNS_MIN : 0;
}

/*
 * Names culprits. If the first audit found the version slower, but no function's time rose by more
 * than chance, the functions whose rises cost most are suspects: an audit has the last word.
 */
static int name_culprits(const struct engine *e, const struct me_samples *samples,
			 struct me_culprit **found, size_t *nr)
{
	int rc = me_culprits_find(samples, CULPRIT_ALPHA, found, nr);

	if (rc || *nr || !is(&e->options->first, "slower"))
		return rc;
	free(*found);
	rc = me_culprits_find(samples, 1, found, nr);
	if (*nr > ME_REFINE_SUSPECTS)
		*nr = ME_REFINE_SUSPECTS;
	return rc;
}

static int find_culprits(struct engine *e)
{
	const struct me_refine_options *o = e->options;
	struct runs runs = {.nr = 2 * affordable_runs(e)};
	struct me_culprit *found = NULL;
	struct me_samples samples;
	size_t nr = 0;
	int rc;

	if (!runs.nr)
		return end(e, "there was no time for more runs");
	runs.counts = calloc(runs.nr * o->nr_funcs + 1, sizeof(*runs.counts));
	runs.moved = calloc(o->nr_funcs + 1, sizeof(*runs.moved));
	rc = runs.counts && runs.moved ? sample_both(e, &runs) : no_memory(e);
	e->report->nr_runs = runs.nr;
	samples = (struct me_samples){runs.nr, o->nr_funcs, runs.changed, runs.counts};
	if (!rc && name_culprits(e, &samples, &found, &nr))
		rc = no_memory(e);
	if (!rc)
		rc = note_culprits(e, found, nr, runs.moved);
	free(found);
	free(runs.counts);
	free(runs.moved);
	return rc ? end_by(e, rc) : 0;
}

/* ---- the version without them -------------------------------------------------------------- */

/* Makes the version in which all culprits stay. Return: 0, 1: the refinement ended, -errno. */
static int make(struct engine *e)
{
	const struct me_runner *runner = e->options->runner;
	struct me_refine_report *r = e->report;
	bool changed = false;
	int rc;

	if (!r->nr_culprits)
		return end(e, "no function takes longer than in the original");
	rc = me_wishes_copy(&r->wishes, &e->options->wishes) ? no_memory(e) : 0;
	for (size_t i = 0; i < r->nr_culprits && !rc; i++) {
		const struct me_adjust stay = {.vaddr = r->culprits[i].vaddr,
					       .kind = ME_ADJUST_STAY};

		if (!r->culprits[i].moved)
			continue;
		changed = true;
		if (me_wishes_replace(&r->wishes, &stay))
			rc = no_memory(e);
	}
	if (!rc && !changed)
		return end(e, "the functions that take longer were not moved");
	if (!rc)
		rc = runner->make(runner->arg, &r->wishes, ME_REFINE_SECOND_NAME, e->err);
	return rc ? end_by(e, rc) : 0;
}

/* ---- audits -------------------------------------------------------------------------------- */

/* Time of the least audit that can decide: A's first run, a pair to warm up, and the pairs. */
static double audit_least_s(const struct engine *e)
{
	return (double)(2 * mp_seq_least_pairs(me_refine_alpha(e->options->alpha)) + 3) * e->run_s;
}

/* A version that may be faster than the original, if a longer audit says so. */
static void note_undecided(struct me_refine_report *r, enum me_refine_best version,
			   const struct me_verdict *verdict)
{
	if (r->undecided != ME_REFINE_ORIGINAL && verdict->speedup <= r->undecided_verdict.speedup)
		return;
	r->undecided = version;
	r->undecided_verdict = *verdict;
}

/* Draws the consequences of the audit of the version without culprits. */
static int judge(struct engine *e)
{
	struct me_refine_report *r = e->report;
	const struct me_verdict *v = &r->verdict;

	if (is(v, "output differs"))
		return end(e, "a version's output differs");
	if (is(v, "undecided") && r->against_original)
		note_undecided(r, ME_REFINE_SECOND, v);
	if (!is(v, "faster"))
		return end(e, "the version without them was not shown to be faster");
	if (r->against_original) {
		r->estimate = *v;
	} else {
		r->estimate.speedup *= v->speedup;
		r->estimate.lowest *= v->lowest;
		r->estimate.highest *= v->highest;
		/* Either interval may be wrong. */
		r->estimate.alpha += v->alpha;
		r->estimate.nr_pairs = v->nr_pairs;
	}
	r->best = ME_REFINE_SECOND;
	return end(e, "the version without them is faster");
}

static int audit(struct engine *e)
{
	const struct me_runner *runner = e->options->runner;
	struct me_refine_report *r = e->report;
	double left = left_s(e);
	int rc;

	if (left < audit_least_s(e))
		return end(e, "there was no time for an audit");
	r->against_original = r->best == ME_REFINE_ORIGINAL;
	runner->say(runner->arg, "auditing");
	rc = runner->audit(runner->arg, r->against_original ? NULL : e->options->version,
			   ME_REFINE_SECOND_NAME, me_refine_alpha(e->options->alpha), left,
			   &r->verdict, e->err);
	return rc ? end_by(e, rc) : judge(e);
}

int me_refine(const struct me_refine_options *options, struct me_refine_report *report,
	      struct mp_err *err)
{
	struct engine e = {.options = options,
			   .report = report,
			   .err = err,
			   .random = options->seed | 1,
			   .run_s = options->run_s};
	int rc;

	*report = (struct me_refine_report){.best = ME_REFINE_ORIGINAL};
	e.start_s = now_s(&e);
	if (is(&options->first, "faster")) {
		report->best = ME_REFINE_FIRST;
		report->estimate = options->first;
	} else if (is(&options->first, "undecided")) {
		note_undecided(report, ME_REFINE_FIRST, &options->first);
	}
	rc = find_culprits(&e);
	if (!rc)
		rc = make(&e);
	if (!rc)
		rc = audit(&e);
	if (report->best != ME_REFINE_ORIGINAL)
		report->undecided = ME_REFINE_ORIGINAL;
	report->seconds = now_s(&e) - e.start_s;
	return rc < 0 ? rc : 0;
}

void me_refine_report_fini(struct me_refine_report *report)
{
	for (size_t i = 0; i < report->nr_culprits; i++)
		free(report->culprits[i].name);
	free(report->culprits);
	me_wishes_fini(&report->wishes);
	*report = (struct me_refine_report){.best = ME_REFINE_ORIGINAL};
}
