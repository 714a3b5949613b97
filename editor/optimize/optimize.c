// SPDX-License-Identifier: Apache-2.0
/*
 * optimize - calls the stages in order and collects the facts for the report. The stages
 * decide; this file has no policy. Called by morph-optimize, inplace and train.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/optimize/optimize_private.h"
#include "libprof/base/clock.h"

/*
 * The most memory that this program used. getrusage() does not tell: exec keeps ru_maxrss,
 * which may be that of a larger parent.
 */
static uint64_t peak_rss_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib * 1024;
}

static int nothing_to_move(struct me_job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;

	r->nothing_to_move = true;
	if (me_lacks_unwind(r))
		return mp_err_set(
			err, ENODATA,
			"%s: nothing can be moved, nothing was written: %.0f %% of its code has "
			"no unwind information (.eh_frame), which tells where functions begin "
			"and end",
			job->options->input,
			100.0 * (1.0 - (double)r->code_described / (double)r->code_bytes));
	if (!r->nr_left_alone)
		return mp_err_set(err, ENODATA, "%s: nothing worth moving, nothing was written",
				  job->options->input);
	return mp_err_set(err, ENODATA, "%s: nothing can be moved, nothing was written: %s",
			  job->options->input, r->left_alone[0].why);
}

/* From here on only the plan is needed of all that came from the profile. */
static void forget_profile(struct me_job *job)
{
	me_instrument_free(job->instrument);
	job->instrument = NULL;
	me_meter_free(job->meter);
	job->meter = NULL;
	me_number_free(job->number);
	job->number = NULL;
	if (!job->options->print) /* which shows counts beside places */
		mp_counts_fini(&job->counts);
	mp_path_evidence_fini(&job->paths);
	mp_entry_samples_fini(&job->entries);
	mp_profile_free(job->profile);
	mp_profile_free(job->sampled);
	job->profile = job->sampled = NULL;
	/* Give the many small blocks of inference and layout back before emit allocates
	 * large ones. */
	malloc_trim(0);
	mp_elf_drop_pages(job->elf);
}

static int give_plan(struct me_job *job, struct mp_err *err)
{
	return job->options->take_plan(job->options->take_ctx, job->cfg,
				       job->options->all ? NULL : &job->counts, &job->plan, err);
}

static int finish_plan(struct me_job *job, struct mp_err *err)
{
	int rc = job->options->save_plan ? me_job_begin_saving(job, err) : 0;

	if (!rc)
		rc = me_job_rewrite(job, err);
	return rc ? rc : me_job_redirect(job, err);
}

static int optimize(struct me_several *several, const struct me_next_try *learnt,
		    struct me_optimize_report *report, struct mp_err *err)
{
	struct me_optimize_options *options = &several->own;
	struct me_job job = {.options = options,
			     .several = several,
			     .learnt = learnt,
			     .report = report,
			     .stage_start_s = mp_now_s(),
			     .stage_start_cpu_s = mp_clock_s(CLOCK_PROCESS_CPUTIME_ID)};
	int rc;

	*report = (struct me_optimize_report){0};
	if (options->layout.original && !options->counting.meter)
		return mp_err_set(err, EINVAL, "--layout=original is for versions with a meter");
	options->all |= options->layout.original;
	rc = me_job_read_file(&job, err);
	if (!rc)
		rc = me_job_print(&job, ME_PRINT_CFG, NULL, err);
	if (!rc && !options->all)
		rc = me_job_read_profile(&job, err);
	if (!rc)
		rc = options->plan ? me_job_read_plan(&job, options, err) : me_job_plan(&job, err);
	if (!rc && options->remove_markers)
		rc = me_job_leave_markers_out(&job, err);
	if (!rc)
		rc = me_job_print(&job, ME_PRINT_COUNTS, NULL, err);
	if (!rc)
		rc = me_job_print(&job, ME_PRINT_PLAN, NULL, err);
	if (!rc && options->counting.edges)
		rc = me_job_add_counters(&job, err);
	if (!rc && options->counting.meter)
		rc = me_job_add_meter(&job, err);
	if (!rc && options->counting.paths)
		rc = me_job_add_numbers(&job, err);
	if (!rc && options->counting.audit)
		rc = me_job_add_versions(&job, err);
	if (!rc && options->counting.calls)
		rc = me_job_add_call_clock(&job, err);
	if (!rc && options->counting.none)
		rc = me_job_add_nothing(&job, err);
	if (!rc)
		rc = me_job_account(&job, err);
	if (!rc && job.plan.nr_blocks == 0)
		rc = nothing_to_move(&job, err);
	if (!rc)
		rc = options->take_plan ? give_plan(&job, err) : finish_plan(&job, err);
	forget_profile(&job);
	if (!rc && !options->take_plan)
		rc = me_job_produce(&job, err);
	if (!rc && options->save_plan)
		rc = me_job_save_plan(&job, err);
	mp_counts_fini(&job.counts);
	me_pointers_fini(&job.pointers);
	me_plan_fini(&job.plan);
	me_instrumentation_fini(&job.added);
	me_slices_fini(&job.slices);
	me_eligible_fini(&job.eligible);
	free(job.movable);
	free(job.adjustments);
	me_plan_file_fini(&job.given);
	me_plan_writer_free(job.saved);
	free(job.replaced);
	mp_cfg_free(job.cfg);
	mp_elf_close(job.debug);
	mp_elf_close(job.elf);
	report->peak_rss_bytes = peak_rss_bytes();
	return rc;
}

int me_optimize(const struct me_optimize_options *options, struct me_optimize_report *report,
		struct mp_err *err)
{
	struct me_several several = {
		.own = *options, .more = options->then, .nr_more = options->nr_then};
	struct me_next_try learnt = {0};
	double stage_s[ME_NR_STAGES] = {0}, stage_cpu_s[ME_NR_STAGES] = {0};
	uint32_t nr_attempts = 0;
	int rc = me_several_branch(&several, ME_BRANCH_START, err);
	bool tries = rc >= 0;

	*report = (struct me_optimize_report){0};
	/* Most files need no second attempt. */
	while (tries) {
		rc = optimize(&several, &learnt, report, err);
		several.nr_more = 0;
		/* Failed attempts count, too. */
		for (int i = 0; i < ME_NR_STAGES; i++) {
			report->stage_s[i] = stage_s[i] += report->stage_s[i];
			report->stage_cpu_s[i] = stage_cpu_s[i] += report->stage_cpu_s[i];
		}
		report->nr_attempts = ++nr_attempts;
		/* A plan from a file says which functions have copies. */
		tries = (rc == -EPERM || rc == -EBADMSG) && !several.own.plan &&
			!me_next_try_learn(&learnt, &report->verified, err);
		if (tries)
			me_optimize_report_fini(report);
	}
	me_next_try_fini(&learnt);
	me_several_end(&several, rc, err);
	return rc;
}

void me_optimize_report_fini(struct me_optimize_report *report)
{
	for (uint32_t i = 0; i < report->nr_left_alone; i++)
		free(report->left_alone[i].name);
	free(report->left_alone);
	for (uint32_t i = 0; i < report->nr_adjusted; i++)
		free(report->adjusted[i].name);
	free(report->adjusted);
	for (uint32_t i = 0; i < report->nr_decided; i++)
		free(report->decided[i].name);
	free(report->decided);
	for (uint32_t i = 0; i < report->nr_left_out; i++)
		free(report->left_out[i].name);
	free(report->left_out);
	report->left_out = NULL;
	report->nr_left_out = 0;
	report->decided = NULL;
	report->nr_decided = 0;
	for (uint32_t i = 0; i < report->nr_adjust_unknown; i++)
		free(report->adjust_unknown[i]);
	free(report->adjust_unknown);
	free(report->stale.path);
	report->stale.path = NULL;
	free(report->debug_file);
	free(report->debug_output);
	report->debug_file = report->debug_output = NULL;
	me_emitted_fini(&report->emitted);
	me_unowned_samples_fini(&report->unowned);
	report->left_alone = NULL;
	report->adjusted = NULL;
	report->adjust_unknown = NULL;
	report->nr_left_alone = report->nr_adjusted = report->nr_adjust_unknown = 0;
}
