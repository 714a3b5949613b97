// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_counters - what makes an output count, number paths or sample calls: which functions cannot, and
 * which kind of counters serves the file. Called by optimize.c and optimize_read.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/evidence/gs_use.h"
#include "editor/optimize/optimize_private.h"
#include "editor/emit/start.h"
#include "editor/instrument/stubs.h"
#include "libprof/note/audit_table.h"

/* Counters are added to a copy along its unwind rows; these functions have none. */
void me_job_leave_bare(struct me_job *job)
{
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!job->movable[f] || !(job->cfg->funcs[f].flags & MP_FUNC_BARE))
			continue;
		job->movable[f] = 0;
		job->eligible.verdict[f] = ME_REFUSED_UNWIND;
		job->eligible.detail[f] = mp_problem_name(MP_PROBLEM_NO_FDE);
	}
}

/* A function stays where verify can prove no register free for the numbers. */
int me_job_number_registers(struct me_job *job, struct mp_err *err)
{
	uint16_t *barred = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*barred));
	int rc;

	if (!barred)
		return mp_err_set(err, ENOMEM, "out of memory");
	me_next_try_bar(job->learnt, job->cfg, barred);
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (barred[f] != ME_UNPROVED_ANY || !job->movable[f])
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "not numbered: what its registers hold is not proved";
	}
	/* A number cannot say which jump led to a label whose address is a value. */
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!job->movable[f] || !(job->cfg->funcs[f].flags & MP_FUNC_LABELS))
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "not numbered: its labels are values";
	}
	rc = me_number_new(job->cfg, job->options->counting.polls, job->movable, barred,
			   &job->number, err);
	free(barred);
	return rc;
}

static bool starts_threads(const struct mp_elf *elf)
{
	static const char *const names[] = {"pthread_create", "thrd_create"};

	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (elf->symbols[i].name && !strcmp(elf->symbols[i].name, names[n]))
				return true;
	return false;
}

/*
 * Threads find their own counters by %gs, which only one file of a process can use. A process has
 * one program but several libraries, and a library also runs in threads that other files start.
 */
static enum me_counters choose_for(const struct me_job *job)
{
	const struct me_counting *c = &job->options->counting;
	struct me_start start;
	struct mp_err why;
	bool program = !me_start_find(job->elf, &start, &why) && start.program;

	if (!starts_threads(job->elf) && (program || !c->alone))
		return ME_COUNTERS_PLAIN;
	return (program || c->alone) && !me_gs_is_used(job->elf) ? ME_COUNTERS_THREADS
								 : ME_COUNTERS_ATOMIC;
}

/* Two threads lose counts when they count in the same counter at once, unless it is atomic. */
static int choose_counters(struct me_job *job, struct mp_err *err)
{
	switch (job->options->counting.how) {
	case ME_COUNT_PLAIN: job->added.counters = ME_COUNTERS_PLAIN; break;
	case ME_COUNT_ATOMIC: job->added.counters = ME_COUNTERS_ATOMIC; break;
	case ME_COUNT_THREADS:
		if (me_gs_is_used(job->elf))
			return mp_err_set(err, EPERM,
					  "%s: uses %%gs itself: count with edges,atomic",
					  job->options->input);
		job->added.counters = ME_COUNTERS_THREADS;
		break;
	default: job->added.counters = choose_for(job);
	}
	/* The threads of a running process have no %gs that leads to counters. */
	if (job->options->live_at && job->added.counters == ME_COUNTERS_THREADS)
		job->added.counters = ME_COUNTERS_ATOMIC;
	job->report->counters = job->added.counters;
	return 0;
}

int me_job_add_counters(struct me_job *job, struct mp_err *err)
{
	const struct me_counting *c = &job->options->counting;
	int rc = choose_counters(job, err);

	if (rc)
		return rc;
	job->added.counts_path = c->path;
	return me_instrument_plan(job->instrument, job->options->all ? NULL : &job->counts,
				  job->movable, &job->plan, &job->added, &job->report->instrumented,
				  err);
}

int me_job_find_meter(struct me_job *job, const char *file, struct mp_err *err)
{
	if (job->meter && !strcmp(job->meter_file, file))
		return 0;
	me_meter_free(job->meter);
	job->meter_file = file;
	return me_meter_new(job->cfg, job->movable, job->eligible.detail, file, &job->meter, err);
}

int me_job_read_meter(struct me_job *job, struct mp_err *err)
{
	const uint8_t *functions;
	int rc = me_job_find_meter(job, job->options->counting.meter, err);

	if (rc || !job->options->layout.original)
		return rc;
	functions = me_meter_functions(job->meter);
	for (uint32_t f = 0; f < job->cfg->nr_funcs; f++) {
		if (!job->movable[f] || functions[f])
			continue;
		job->movable[f] = 0;
		job->eligible.detail[f] = "holds no counter";
	}
	return 0;
}

int me_job_add_meter(struct me_job *job, struct mp_err *err)
{
	int rc = choose_counters(job, err);

	if (rc)
		return rc;
	/* A few counters that threads share cost less than the checks for counters of each. */
	if (job->added.counters == ME_COUNTERS_THREADS)
		job->added.counters = ME_COUNTERS_ATOMIC;
	job->report->counters = job->added.counters;
	job->added.counts_path = job->options->counting.path;
	return me_meter_plan(job->meter, &job->plan, &job->added, &job->report->metered, err);
}

int me_job_add_numbers(struct me_job *job, struct mp_err *err)
{
	job->added.counts_path = job->options->counting.path;
	return me_number_plan(job->number, job->options->all ? NULL : &job->counts, job->movable,
			      &job->plan, &job->added, &job->report->numbered, err);
}

int me_job_add_versions(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	const struct mp_profile *profile = job->profile;
	struct me_versions_request request = {
		.samples = profile && profile->nr_samples ? profile->block_samples : NULL,
		.nr_samples = profile ? profile->nr_samples + profile->nr_outside : 0,
		.counts = o->all ? NULL : &job->counts,
		.all = o->all || o->only.given,
	};
	struct me_loop_points points = {0};
	uint16_t *unproved;
	uint8_t *chosen;
	struct mp_err why;
	int rc;

	if (me_gs_is_used(job->elf))
		return mp_err_set(err, EPERM, "%s: uses %%gs itself, which audits need", o->input);
	chosen = calloc((size_t)job->cfg->nr_funcs + 1, 1);
	request.unproved = unproved = calloc((size_t)job->cfg->nr_funcs + 1, sizeof(*unproved));
	if (!chosen || !unproved) {
		free(chosen);
		free(unproved);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	me_next_try_bar(job->learnt, job->cfg, unproved);
	rc = me_versions_choose(job->cfg, job->movable, &job->plan, &request, chosen,
				&job->report->audited, &why);
	if (!rc)
		rc = me_loop_points_choose(job->cfg, job->movable, chosen, &job->plan,
					   request.counts, request.all, &points, &why);
	if (!rc) {
		me_loop_points_report(job->cfg, &points, &job->report->loops);
		rc = me_versions_plan(job->cfg, chosen, &points, &job->plan, &job->added, &why);
	}
	me_loop_points_fini(&points);
	free(chosen);
	free(unproved);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", o->input, why.msg);
	job->added.counts_path = o->counting.path;
	job->added.table_name = MP_AUDIT_TABLE_SECTION;
	job->added.nr_counters =
		job->added.nr_audited * (uint32_t)(sizeof(struct me_audit_slot) / 8);
	return 0;
}

int me_job_add_call_clock(struct me_job *job, struct mp_err *err)
{
	job->added.counts_path = job->options->counting.path;
	return me_call_clock_plan(job->cfg, job->options->all ? NULL : &job->counts, job->movable,
				  &job->plan, &job->added, &job->report->clock, err);
}

int me_job_add_nothing(struct me_job *job, struct mp_err *err)
{
	struct me_stubs none = {0};
	uint32_t nr_inline;

	return me_stubs_put(job->cfg, job->movable, &none, &job->plan, &job->added, &nr_inline)
		       ? mp_err_set(err, ENOMEM, "out of memory")
		       : 0;
}
