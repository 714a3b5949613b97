// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_stage - what ends a stage: its times, the report of progress, what --print shows of
 * it.
 */
#include "editor/optimize/optimize_private.h"
#include "libprof/base/clock.h"

void me_job_end_stage(struct me_job *job, enum me_stage stage)
{
	double now = mp_now_s(), now_cpu = mp_clock_s(CLOCK_PROCESS_CPUTIME_ID);

	job->report->stage_s[stage] += now - job->stage_start_s;
	job->report->stage_cpu_s[stage] += now_cpu - job->stage_start_cpu_s;
	job->stage_start_s = now;
	job->stage_start_cpu_s = now_cpu;
	/* The next stage loads the pages that it reads. */
	mp_elf_drop_pages(job->elf);
	stage++;
	if (job->options->all && stage == ME_STAGE_PROFILE)
		stage = ME_STAGE_LAYOUT;
	if (stage == ME_STAGE_DEBUG)
		stage++;
	if (job->options->progress && stage < ME_NR_STAGES)
		job->options->progress(stage);
}

int me_job_print(struct me_job *job, enum me_print_what what, const struct me_placement *placement,
		 struct mp_err *err)
{
	const struct me_print data = {
		.cfg = job->cfg,
		.eligible = &job->eligible,
		.counts = job->counts.block ? &job->counts : NULL,
		.plan = job->plan.blocks ? &job->plan : NULL,
		.placement = placement,
	};
	struct mp_err why;
	int rc = me_print(job->options->print, what, &data, &why);

	return rc ? mp_err_set(err, -rc, "%s: %s", job->options->input, why.msg) : 0;
}
