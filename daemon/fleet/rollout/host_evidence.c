// SPDX-License-Identifier: Apache-2.0
/* host_evidence - see host_evidence.h. */
#include "daemon/fleet/rollout/host_evidence.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/everyday/probation.h"
#include "daemon/worker/work_dir.h"
#include "daemon/worker/worker.h"

/*
 * An audit whose capital is not known any more: its interval leaves out "equally fast" if one direction's
 * capital ever was 2 / alpha = 200. "200 if that happened, else 0" is an e-value of this direction.
 */
#define LOG_WON	 5.298317366548036
#define LOG_LOST (-700.0)

static void set(json_t *facts, const char *name, double value)
{
	if (isfinite(value))
		json_object_set_new(facts, name, json_real(value));
}

static void add_audit(json_t *facts, const struct mp_job_gain *gain, double pairs,
		      double log_faster, double log_slower)
{
	set(facts, "pairs", pairs);
	set(facts, "ratio", gain->ratio);
	if (gain->lowest > 0)
		set(facts, "lowest", gain->lowest);
	if (gain->highest > 0)
		set(facts, "highest", gain->highest);
	set(facts, "log_faster", log_faster);
	set(facts, "log_slower", log_slower);
}

/* The audit of these very bytes, as the worker's directory has it; else what the job says of it. */
static void read_audit(const char *state_dir, const struct mp_job *job,
		       struct md_host_evidence *out)
{
	struct md_work_dir dir;
	struct md_evidence e;
	struct mp_err unknown;

	if (!md_work_dir_find(state_dir, job->path, &dir, &unknown) && md_evidence_load(&dir, &e) &&
	    !strcmp(e.output, job->layout) && e.gain.ratio > 0) {
		add_audit(out->facts, &e.gain, (double)e.pairs, e.log_faster, e.log_slower);
		if (!strcmp(e.verdict, "differs"))
			snprintf(out->state, sizeof(out->state), "differs");
	} else if (job->gain.ratio > 0 && job->gain.lowest > 0) {
		add_audit(out->facts, &job->gain, 1, job->gain.lowest > 1 ? LOG_WON : LOG_LOST,
			  job->gain.highest > 0 && job->gain.highest < 1 ? LOG_WON : LOG_LOST);
	}
}

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

static int read_probation(struct mp_store *store, const char *state_dir, struct mp_job *job,
			  struct md_host_evidence *out, struct mp_err *err)
{
	struct md_worker worker = {.store = store};
	struct md_task task = {.worker = &worker, .job = job, .err = err};
	struct md_work_samples now;
	struct mp_err unknown;
	int r = md_task_samples(&task, &now);

	/* The directory names the program that has loaded a library. */
	if (md_work_dir_find(state_dir, job->path, &task.dir, &unknown))
		task.dir.path[0] = '\0';
	if (!r) {
		set(out->facts, "own_before", (double)job->before_samples);
		set(out->facts, "elsewhere_before", (double)job->before_all);
		set(out->facts, "own_after", since(now.own, job->before_samples));
		set(out->facts, "elsewhere_after", since(now.elsewhere, job->before_all));
		set(out->facts, "crashes", (double)md_task_crashes(&task, job->adopted_s));
		set(out->facts, "crashes_before", (double)job->before_crashes);
		set(out->facts, "before_s", MD_PROBATION_BEFORE_S);
		set(out->facts, "after_s", fmax((double)(time(NULL) - job->adopted_s), 1));
	}
	return r;
}

static void judge_state(struct md_host_evidence *out, enum mp_job_state state)
{
	snprintf(out->state, sizeof(out->state), "%s", mp_job_state_name(state));
	out->installed = mp_job_state_in_place(state);
	out->ended = mp_job_state_ends(state) && state != MP_JOB_KEPT && state != MP_JOB_ADVISED;
}

int md_host_evidence_read(struct mp_store *store, const char *state_dir,
			  const struct md_lease *lease, struct md_host_evidence *out,
			  struct mp_err *err)
{
	struct mp_job job = {0};
	struct mp_err unknown;
	int r = mp_store_find_job(store, lease->path, &job, &unknown);

	*out = (struct md_host_evidence){.state = "gone", .ended = true, .facts = json_object()};
	if (!out->facts)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (r)
		return r == -ENOENT ? 0 : mp_err_set(err, -r, "%s", unknown.msg);
	/* Another version is at this path now, or will be. */
	if (!lease->layout[0] || !job.layout[0] || !strcmp(lease->layout, job.layout)) {
		judge_state(out, job.state);
		read_audit(state_dir, &job, out);
		if (job.adopted_s)
			r = read_probation(store, state_dir, &job, out, err);
	}
	mp_store_fini_job(&job);
	return r;
}
