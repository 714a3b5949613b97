// SPDX-License-Identifier: Apache-2.0
/* refine - the rounds; see refine.h. */
#include "editor/refine/refine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/audit/sequential_test.h"
#include "editor/refine/alternatives.h"
#include "editor/refine/screen.h"

/*
 * Least and most runs of each version from which culprits are named. The upper limit is an
 * assumption: with twenty runs Student's t has 18 degrees of freedom, and further runs hardly lower
 * the value that a test needs. They would find smaller rises, and leave less time for trials and
 * audits.
 */
#define RUNS_MIN ME_CULPRIT_LEAST_RUNS
#define RUNS_MAX 10
/*
 * Share of the remaining time that naming culprits may take. Assumption: the rest is for the 16
 * sampled versions of a screen and for the audit. With a larger share small rises are found for
 * which there is no time to act; with a smaller one short budgets name no culprits.
 */
#define SAMPLING_SHARE 0.25
/*
 * Level of one round's test for culprits. If no function became slower, at most 1 % of refinements
 * name a function in any of their rounds (results.md, "Refining": 0 of 600 splits; test_culprits
 * simulates it).
 */
#define CULPRIT_ALPHA (0.01 / ME_REFINE_ROUNDS)

/* A version: its name and its adjustments. */
struct version {
	char name[32]; /* "": the original */
	struct me_wishes wishes;
};

struct engine {
	const struct me_refine_options *options;
	struct me_refine_report *report;
	struct mp_err *err;
	struct version now;		/* the version that is being improved */
	struct version best;		/* shown to be faster than all before it */
	struct me_verdict best_verdict; /* of @best against the original */
	struct me_wishes tried;
	bool slower; /* an audit found @now slower than the original */
	double start_s;
	double run_s; /* of one run, as the latest ones took */
	uint64_t random;
};

double me_refine_first_alpha(double alpha)
{
	return alpha / 2;
}

double me_refine_round_alpha(double alpha, size_t round)
{
	return round ? alpha / 8 : alpha / 4;
}

static double now_s(const struct engine *e)
{
	return e->options->runner->now_s(e->options->runner->arg);
}

static double left_s(const struct engine *e)
{
	return e->options->budget_s - (now_s(e) - e->start_s);
}

static const char *name_of(const struct version *version)
{
	return version->name[0] ? version->name : NULL;
}

static int no_memory(struct engine *e)
{
	return mp_err_set(e->err, ENOMEM, "out of memory");
}

static int set_version(struct engine *e, struct version *to, const char *name,
		       const struct me_wishes *wishes)
{
	struct me_wishes copy;

	if (me_wishes_copy(&copy, wishes))
		return no_memory(e);
	me_wishes_fini(&to->wishes);
	to->wishes = copy;
	snprintf(to->name, sizeof(to->name), "%s", name);
	return 0;
}

/* Ends the refinement for a reason. Return: 1, so that no further round begins. */
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

static int sample_one(struct engine *e, struct runs *runs, unsigned int i)
{
	const struct me_runner *runner = e->options->runner;
	struct me_sampled sampled = {.counts = runs->counts + i * e->options->nr_funcs};

	if (runs->changed[i])
		sampled.moved = runs->moved;
	return runner->sample(runner->arg, runs->changed[i] ? e->now.name : NULL, &sampled, e->err);
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
	me_screen_shuffle(&e->random, order, (unsigned int)runs->nr);
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

static int note_culprits(struct engine *e, struct me_refine_round *round,
			 const struct me_culprit *found, size_t nr, const bool *moved)
{
	round->culprits = calloc(nr + 1, sizeof(*round->culprits));
	if (!round->culprits)
		return no_memory(e);
	for (size_t i = 0; i < nr; i++) {
		round->culprits[i] = (struct me_refine_culprit){
			.found = found[i],
			.name = strdup(e->options->funcs[found[i].func].name),
			.vaddr = e->options->funcs[found[i].func].vaddr,
			.moved = moved[found[i].func],
			.suspect = found[i].p > CULPRIT_ALPHA,
		};
		if (!round->culprits[i].name)
			return no_memory(e);
		round->nr_culprits++;
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
 * Names culprits. If an audit found the version slower, but no function's time rose by more than
 * chance, the functions whose rises cost most are suspects. They may be tried: an audit has the
 * last word.
 */
static int name_culprits(const struct engine *e, const struct me_samples *samples,
			 struct me_culprit **found, size_t *nr)
{
	int rc = me_culprits_find(samples, CULPRIT_ALPHA, found, nr);

	if (rc || *nr || !e->slower)
		return rc;
	free(*found);
	rc = me_culprits_find(samples, 1, found, nr);
	if (*nr > ME_DESIGN_FACTORS)
		*nr = ME_DESIGN_FACTORS;
	return rc;
}

static int find_culprits(struct engine *e, struct me_refine_round *round)
{
	const struct me_refine_options *o = e->options;
	struct runs runs = {.nr = 2 * affordable_runs(e)};
	struct me_culprit *found = NULL;
	struct me_samples samples;
	size_t nr = 0;
	int rc;

	if (!runs.nr) {
		e->report->nr_rounds--;
		return end(e, "there was no time for more runs");
	}
	runs.counts = calloc(runs.nr * o->nr_funcs + 1, sizeof(*runs.counts));
	runs.moved = calloc(o->nr_funcs + 1, sizeof(*runs.moved));
	rc = runs.counts && runs.moved ? sample_both(e, &runs) : no_memory(e);
	round->nr_runs += runs.nr;
	samples = (struct me_samples){runs.nr, o->nr_funcs, runs.changed, runs.counts};
	if (!rc && name_culprits(e, &samples, &found, &nr))
		rc = no_memory(e);
	if (!rc)
		rc = note_culprits(e, round, found, nr, runs.moved);
	free(found);
	free(runs.counts);
	free(runs.moved);
	return rc && rc != 1 ? end_by(e, rc) : rc;
}

/* ---- remedies ------------------------------------------------------------------------------ */

/* The culprits that can be adjusted, most harmful first. Return: their number. */
static size_t choose_functions(const struct engine *e, const struct me_refine_round *round,
			       struct me_screen *screen, size_t index[ME_DESIGN_FACTORS])
{
	screen->nr = 0;
	for (size_t i = 0; i < round->nr_culprits && screen->nr < ME_DESIGN_FACTORS; i++) {
		const struct me_refine_culprit *c = &round->culprits[i];
		const struct me_adjust stay = {.vaddr = c->vaddr, .kind = ME_ADJUST_STAY};

		if (!c->moved || me_wishes_have(&e->now.wishes, &stay))
			continue;
		index[screen->nr] = i;
		screen->funcs[screen->nr] = c->found.func;
		screen->levels[screen->nr++] = me_alternatives(c->vaddr, &e->tried);
	}
	return screen->nr;
}

static double round_alpha(const struct engine *e)
{
	return me_refine_round_alpha(e->options->alpha, e->report->nr_rounds - 1);
}

/* Time of the least audit that can decide: A's first run, a pair to warm up, and the pairs. */
static double audit_least_s(const struct engine *e)
{
	return (double)(2 * mp_seq_least_pairs(round_alpha(e)) + 3) * e->run_s;
}

/* Is there time to try several ways for each culprit, and to audit the result? */
static bool can_screen(const struct engine *e)
{
	return ME_DESIGN_ROWS * (e->run_s + e->options->make_s) + 1.5 * audit_least_s(e) <=
	       left_s(e);
}

static double mean_of_level(const double values[ME_DESIGN_ROWS], unsigned int factor,
			    unsigned int level)
{
	struct me_design_effect effects[ME_DESIGN_LEVELS];

	me_design_effects(values, factor, effects);
	return effects[level].mean;
}

/* Notes each way of each function, so that it need not be tried again. */
static int note_tried(struct engine *e, struct me_refine_round *round,
		      const struct me_screen *screen)
{
	round->tried = calloc(screen->nr * ME_DESIGN_LEVELS + 1, sizeof(*round->tried));
	if (!round->tried)
		return no_memory(e);
	for (size_t i = 0; i < screen->nr; i++)
		for (unsigned int level = 1; level < ME_DESIGN_LEVELS; level++) {
			const double *own = screen->own[i];
			double before = mean_of_level(own, (unsigned int)i, 0);
			double after = mean_of_level(own, (unsigned int)i, level);

			round->tried[round->nr_tried] = (struct me_refine_tried){
				.name = strdup(e->options->funcs[screen->funcs[i]].name),
				.wish = screen->levels[i].wish[level],
				.ratio = after > 0 ? before / after : 0,
				.nr_runs = ME_DESIGN_ROWS / ME_DESIGN_LEVELS,
			};
			if (!round->tried[round->nr_tried++].name ||
			    me_wishes_add(&e->tried, &screen->levels[i].wish[level]))
				return no_memory(e);
		}
	return 0;
}

/* Decides what becomes of the culprits. Return: 0, 1: nothing to change, -errno. */
static int find_remedies(struct engine *e, struct me_refine_round *round)
{
	struct me_screen screen = {
		.options = e->options, .version = e->now.name, .wishes = &e->now.wishes};
	size_t index[ME_DESIGN_FACTORS], nr_changed = 0;
	int rc;

	if (!round->nr_culprits)
		return end(e, "no function takes longer than in the original");
	if (!choose_functions(e, round, &screen, index))
		return end(e, "the functions that take longer were not moved");
	round->screened = can_screen(e);
	if (round->screened) {
		rc = me_screen_run(&screen, &e->random, e->err);
		round->nr_runs += ME_DESIGN_ROWS;
		if (!rc)
			rc = note_tried(e, round, &screen);
		if (rc == -EINTR || rc == -ENOMEM)
			return rc;
		/*
		 * If a row could not be made or run, culprits are left where the original has them.
		 */
		round->screened = !rc;
	}
	for (size_t i = 0; i < screen.nr; i++) {
		struct me_refine_culprit *c = &round->culprits[index[i]];
		unsigned int level = round->screened ? screen.chosen[i] : ME_DESIGN_LEVELS - 1;

		c->changed = level != 0;
		c->wish = screen.levels[i].wish[level];
		nr_changed += c->changed;
	}
	return nr_changed ? 0 : end(e, "no other place was better");
}

/* ---- audits -------------------------------------------------------------------------------- */

/* @best was shown to be faster than @verdict's other side, which is @e->best. */
static struct me_verdict against_original(const struct engine *e, const struct me_verdict *verdict)
{
	struct me_verdict v = *verdict;

	if (!e->best.name[0])
		return v;
	v.speedup *= e->best_verdict.speedup;
	v.lowest *= e->best_verdict.lowest;
	v.highest *= e->best_verdict.highest;
	/* Either interval may be wrong. */
	v.alpha += e->best_verdict.alpha;
	return v;
}

static bool is(const struct me_verdict *verdict, const char *word)
{
	return !strcmp(verdict->verdict, word);
}

/* A version that may be faster than the original, if a longer audit says so. */
static int note_undecided(struct engine *e, const struct version *version,
			  const struct me_verdict *verdict)
{
	struct me_refine_report *r = e->report;

	if (r->undecided[0] && verdict->speedup <= r->undecided_verdict.speedup)
		return 0;
	me_wishes_fini(&r->undecided_wishes);
	if (me_wishes_copy(&r->undecided_wishes, &version->wishes))
		return no_memory(e);
	snprintf(r->undecided, sizeof(r->undecided), "%s", version->name);
	r->undecided_verdict = *verdict;
	return 0;
}

/* Draws the consequences of an audit of @made against the best version so far. */
static int judge(struct engine *e, const struct version *made, const struct me_refine_round *round)
{
	const struct me_verdict *v = &round->verdict;
	int rc = 0;

	if (is(v, "output differs"))
		return end(e, "a version's output differs");
	if (is(v, "faster")) {
		e->best_verdict = against_original(e, v);
		rc = set_version(e, &e->best, made->name, &made->wishes);
	} else if (is(v, "undecided") && round->against_original) {
		rc = note_undecided(e, made, v);
	}
	e->slower = is(v, "slower") && round->against_original;
	/* Go on from what is known to be better. */
	if (!rc && is(v, "slower") && e->best.name[0])
		return set_version(e, &e->now, e->best.name, &e->best.wishes);
	return rc ? rc : set_version(e, &e->now, made->name, &made->wishes);
}

/* Makes the version with all remedies. Return: 0, 1: the refinement ended, -errno. */
static int make(struct engine *e, struct me_refine_round *round, struct version *made)
{
	const struct me_runner *runner = e->options->runner;
	int rc = me_wishes_copy(&made->wishes, &e->now.wishes) ? no_memory(e) : 0;

	for (size_t i = 0; i < round->nr_culprits && !rc; i++)
		if (round->culprits[i].changed &&
		    me_wishes_replace(&made->wishes, &round->culprits[i].wish))
			rc = no_memory(e);
	if (!rc && me_wishes_copy(&round->wishes, &made->wishes))
		rc = no_memory(e);
	snprintf(made->name, sizeof(made->name), "refined-%zu", e->report->nr_rounds);
	if (!rc)
		rc = runner->make(runner->arg, &made->wishes, true, made->name, e->err);
	if (rc == -ENODATA)
		return end(e, "nothing is left to move");
	if (!rc)
		snprintf(round->version, sizeof(round->version), "%s", made->name);
	return rc ? end_by(e, rc) : 0;
}

static int audit(struct engine *e, struct me_refine_round *round, const struct version *made)
{
	const struct me_runner *runner = e->options->runner;
	bool last = e->report->nr_rounds == ME_REFINE_ROUNDS;
	double left = left_s(e), least_s = audit_least_s(e);
	int rc;

	if (left < least_s)
		return end(e, "there was no time for an audit");
	round->against_original = !e->best.name[0];
	runner->say(runner->arg, "auditing");
	rc = runner->audit(runner->arg, name_of(&e->best), made->name, round_alpha(e),
			   last || left / 2 < least_s ? left : left / 2, &round->verdict, e->err);
	return rc ? end_by(e, rc) : judge(e, made, round);
}

static int do_round(struct engine *e)
{
	struct me_refine_round *round = &e->report->rounds[e->report->nr_rounds++];
	struct version made = {.name = ""};
	int rc = find_culprits(e, round);

	if (!rc)
		rc = find_remedies(e, round);
	if (!rc)
		rc = make(e, round, &made);
	if (!rc)
		rc = audit(e, round, &made);
	me_wishes_fini(&made.wishes);
	return rc;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int begin(struct engine *e)
{
	const struct me_refine_options *o = e->options;
	struct version first = {.name = ""};
	int rc = set_version(e, &e->now, o->version, &o->wishes);

	if (!rc && me_wishes_copy(&e->tried, &o->tried))
		rc = no_memory(e);
	e->slower = is(&o->first, "slower");
	if (!rc && is(&o->first, "faster")) {
		rc = set_version(e, &e->best, o->version, &o->wishes);
		e->best_verdict = o->first;
	} else if (!rc && is(&o->first, "undecided")) {
		snprintf(first.name, sizeof(first.name), "%s", o->version);
		first.wishes = o->wishes;
		rc = note_undecided(e, &first, &o->first);
	}
	return rc;
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

	*report = (struct me_refine_report){.end = "the last round is over"};
	e.start_s = now_s(&e);
	rc = begin(&e);
	while (!rc && report->nr_rounds < ME_REFINE_ROUNDS)
		rc = do_round(&e);
	if (rc >= 0 && e.best.name[0]) {
		rc = me_wishes_copy(&report->wishes, &e.best.wishes) ? no_memory(&e) : 0;
		snprintf(report->best, sizeof(report->best), "%s", e.best.name);
		report->estimate = e.best_verdict;
		report->undecided[0] = '\0';
	}
	report->seconds = now_s(&e) - e.start_s;
	me_wishes_fini(&e.now.wishes);
	me_wishes_fini(&e.best.wishes);
	me_wishes_fini(&e.tried);
	return rc < 0 ? rc : 0;
}

static void fini_round(struct me_refine_round *round)
{
	for (size_t i = 0; i < round->nr_culprits; i++)
		free(round->culprits[i].name);
	for (size_t i = 0; i < round->nr_tried; i++)
		free(round->tried[i].name);
	free(round->culprits);
	free(round->tried);
	me_wishes_fini(&round->wishes);
}

void me_refine_report_fini(struct me_refine_report *report)
{
	for (size_t i = 0; i < ME_REFINE_ROUNDS; i++)
		fini_round(&report->rounds[i]);
	me_wishes_fini(&report->wishes);
	me_wishes_fini(&report->undecided_wishes);
	*report = (struct me_refine_report){0};
}
