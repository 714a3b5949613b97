// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_account - fills the report with what the plan does: functions and samples that move, and
 * functions that are left alone with the reason. Called by optimize.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/optimize/optimize_private.h"

static int compare_left(const void *a, const void *b)
{
	const struct me_left_alone *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int list_left_alone(struct me_job *job, uint32_t func, uint64_t samples, const char *why)
{
	struct me_optimize_report *r = job->report;
	struct me_left_alone *grown = r->left_alone;

	if ((r->nr_left_alone & (r->nr_left_alone - 1)) == 0) /* 0, 1, 2, 4, 8, ... */
		grown = realloc(grown,
				(r->nr_left_alone ? 2 * r->nr_left_alone : 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->left_alone = grown;
	grown[r->nr_left_alone] = (struct me_left_alone){strdup(job->cfg->funcs[func].name),
							 job->cfg->funcs[func].vaddr, samples, why};
	return grown[r->nr_left_alone++].name ? 0 : -ENOMEM;
}

/* Why a function with samples could not be counted. NULL: it was counted, or did not run. */
static const char *why_uncounted(const struct me_job *job, uint32_t func)
{
	const struct me_optimize_options *o = job->options;

	for (uint32_t i = 0; i < o->nr_uncounted; i++)
		if (o->uncounted[i].vaddr == job->cfg->funcs[func].vaddr)
			return o->uncounted[i].why;
	return NULL;
}

/* Functions that were not counted do not move, so they take as many branches as before. */
static void predict_uncounted(struct me_optimize_report *r)
{
	double u = r->share_uncounted;

	r->prediction.ratio = r->prediction.ratio * (1 - u) + u;
	r->prediction.least = r->prediction.least * (1 - u) + u;
	r->prediction.most = r->prediction.most * (1 - u) + u;
}

/* Sums over the functions of the file. */
struct tally {
	uint8_t *moved, *copied;	/* per function, per block: in the plan */
	const uint64_t *counted, *seen; /* per block: of the profile, of the samples; may be NULL */
	uint64_t seen_in_all, seen_moved, seen_uncounted;
};

static void tally_plan(const struct me_job *job, struct tally *t)
{
	struct me_optimize_report *r = job->report;

	for (uint32_t i = 0; i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *planned = &job->plan.blocks[i];

		if (planned->stub)
			continue;
		t->copied[planned->block] = 1;
		t->moved[job->cfg->blocks[planned->block].func] = 1;
		r->nr_hot_blocks += planned->zone == ME_ZONE_HOT;
	}
	r->nr_blocks = job->plan.nr_blocks - job->added.nr_stubs;
}

/* A function that was considered and does not move. */
static int account_left(struct me_job *job, struct tally *t, uint32_t f, uint64_t samples,
			uint64_t counts)
{
	struct me_optimize_report *r = job->report;
	const char *why = counts ? NULL : why_uncounted(job, f);

	if (why)
		t->seen_uncounted += samples;
	if (job->movable[f] && !why) {
		r->nr_not_worth++;
		return 0;
	}
	r->refused[job->eligible.verdict[f]]++;
	if (job->eligible.verdict[f] == ME_REFUSED_PROBLEM)
		r->problems[job->cfg->funcs[f].problem]++;
	return list_left_alone(job, f, samples, job->movable[f] ? why : job->eligible.detail[f]);
}

static int account_func(struct me_job *job, struct tally *t, uint32_t f)
{
	struct me_optimize_report *r = job->report;
	const struct mp_func *func = &job->cfg->funcs[f];
	uint64_t samples = 0, counts = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (!t->seen)
			break;
		samples += t->seen[b];
		counts += t->counted ? t->counted[b] : 0;
		t->seen_moved += t->copied[b] ? t->seen[b] : 0;
	}
	t->seen_in_all += samples;
	r->nr_moved += t->moved[f];
	if (!samples && !counts && !t->moved[f] && !job->options->all)
		return 0;
	r->nr_considered++;
	return t->moved[f] ? 0 : account_left(job, t, f, samples, counts);
}

int me_job_account(struct me_job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	struct tally t = {
		.moved = calloc(job->cfg->nr_funcs + 1, 1),
		.copied = calloc(job->cfg->nr_blocks + 1, 1),
		.counted = r->samples && job->profile ? job->profile->block_samples
						      : job->counts.samples,
		.seen_in_all = r->samples_outside,
	};
	int rc = t.moved && t.copied ? 0 : -ENOMEM;

	t.seen = job->sampled ? job->sampled->block_samples : t.counted;
	if (!rc)
		tally_plan(job, &t);
	for (uint32_t f = 0; !rc && f < job->cfg->nr_funcs; f++)
		rc = account_func(job, &t, f);
	free(t.moved);
	free(t.copied);
	if (rc)
		return mp_err_code(err, -rc);
	r->samples_moved = r->samples ? t.seen_moved : 0;
	if (t.seen_in_all) {
		r->share_moved = (double)t.seen_moved / (double)t.seen_in_all;
		r->share_uncounted = (double)t.seen_uncounted / (double)t.seen_in_all;
	}
	predict_uncounted(r);
	if (r->nr_left_alone)
		qsort(r->left_alone, r->nr_left_alone, sizeof(*r->left_alone), compare_left);
	return 0;
}
