// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_plan - from a profile to a plan: calls inference, layout and prediction. Called by
 * optimize.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/layout/entries.h"
#include "editor/optimize/optimize_private.h"
#include "editor/layout/plan_all.h"
#include "editor/evidence/redirect.h"
#include "editor/instrument/numbered_limit.h"

/*
 * Finds the addresses that may change. Nothing later changes them, so once is enough. A running process holds any
 * number of copies of them.
 */
static int find_pointers(struct me_job *job, struct mp_err *err)
{
	if (job->options->live_at && !job->pointers.functions) {
		job->pointers.functions = calloc((size_t)job->cfg->nr_funcs + 1, 1);
		return job->pointers.functions ? 0 : mp_err_set(err, ENOMEM, "out of memory");
	}
	return job->pointers.functions ? 0 : me_pointers_find(job->cfg, &job->pointers, err);
}

int me_job_redirect(struct me_job *job, struct mp_err *err)
{
	int rc = find_pointers(job, err);

	if (!rc)
		rc = me_redirects_plan(job->cfg, &job->pointers, &job->plan, err);
	me_pointers_fini(&job->pointers);
	return rc;
}

/* Drops functions whose copies would cost more than they save, adjusts the plan for single
 * functions, and predicts the rest. */
static int weigh_plan(struct me_job *job, struct mp_err *err)
{
	struct me_redirects redirects = {0};
	struct me_entries entries = {0};
	int rc = find_pointers(job, err);

	if (!rc)
		rc = me_redirects_choose(job->cfg, &job->pointers, job->movable, &redirects, err);
	if (!rc)
		rc = me_entries_count(job->cfg, &job->counts, &job->entries, redirects.functions,
				      redirects.labels, &entries, err);
	/* Relinked code is never entered through old code. */
	if (!rc && !job->options->take_plan)
		rc = me_entries_drop_costly(job->cfg, &job->counts, &entries, &job->plan, err);
	for (uint32_t f = 0; f < job->cfg->nr_funcs && !rc; f++) {
		/* A function that holds counters is copied whatever it costs. */
		if (!entries.dropped[f] ||
		    (job->options->counting.meter && me_meter_functions(job->meter)[f]))
			continue;
		job->movable[f] = 0;
		job->eligible.verdict[f] = ME_REFUSED_ENTRIES;
		job->eligible.detail[f] = ME_WHY_ENTRIES;
	}
	if (!rc)
		rc = me_job_adjust_plan(job, err);
	if (!rc)
		rc = me_layout_predict(job->cfg, &job->counts, &job->plan, entries.arrivals,
				       &job->report->prediction, err);
	job->report->has_prediction = !rc;
	me_entries_fini(&entries);
	me_redirects_fini(&redirects);
	return rc;
}

static int limit_numbered(struct me_job *job, const struct mp_counts *counts, struct mp_err *err)
{
	return me_numbered_limit_apply(job->cfg, counts, ME_NUMBERED_PIECES_MAX, job->movable,
				       job->eligible.detail)
		       ? mp_err_set(err, ENOMEM, "out of memory")
		       : 0;
}

int me_job_plan(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	struct mp_counts_options inference = {
		.estimator = o->estimator,
		.layout_prior = true,
		.call_graph = true,
		.paths = job->paths.edge ? &job->paths : NULL,
		.nr_threads = o->nr_threads,
	};
	struct me_layout_options layout = o->layout;
	int rc;

	layout.nr_threads = o->nr_threads;
	if (o->all && o->counting.paths && limit_numbered(job, NULL, err))
		return -ENOMEM;
	if (o->all) {
		rc = me_plan_all(job->cfg, job->movable, o->stress ? &o->stress_seed : NULL,
				 &job->plan, err);
		return rc ? rc : me_job_adjust_plan(job, err);
	}
	rc = mp_counts_build(job->cfg, job->profile, &inference, &job->counts,
			     &job->report->inference, err);
	mp_profile_drop_edges(job->profile);
	mp_path_evidence_fini(&job->paths);
	me_job_end_stage(job, ME_STAGE_INFER);
	if (!rc)
		rc = me_layout_build(job->cfg, &job->counts, job->movable, &layout, &job->plan,
				     err);
	job->report->function_order = layout.function_order;
	if (!rc)
		rc = me_job_branch(job, ME_BRANCH_LAYOUT, ME_STAGE_LAYOUT, err);
	if (rc > 0)
		rc = me_job_read_kind(job, err);
	/* An output that counts must count every function, and saves no branches. */
	if (!rc && (!me_counting_any(&o->counting) || o->counting.audit || o->counting.meter))
		rc = weigh_plan(job, err);
	if (!rc && o->counting.paths)
		rc = limit_numbered(job, &job->counts, err);
	me_job_end_stage(job, ME_STAGE_LAYOUT);
	return rc;
}
