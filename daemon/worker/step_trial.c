// SPDX-License-Identifier: Apache-2.0
/*
 * step_trial - the steps from verified to audited of a program whose everyday use decides. The original and the new
 * version, both with the same counters of their work, are in its place in turns, in pairs of blocks in random order
 * (libprof/trial/trial.h). Nobody has to say how the program is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/everyday/count_dir.h"
#include "daemon/worker/live.h"
#include "daemon/everyday/meter.h"
#include "daemon/worker/running.h"
#include "daemon/worker/trying.h"
#include "daemon/worker/versions.h"
#include "daemon/worker/worker.h"
#include "libprof/trial/trial_state.h"

bool md_trial_may(struct md_task *t)
{
	return md_count_may(t) && md_task_has_verdict(t, "counted", "done") == 1;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* The number of the next trial on this machine, from 1. It is counted before the trial begins. */
static int count_trials(struct md_task *t, uint64_t *k)
{
	char path[PATH_MAX], new[PATH_MAX];
	unsigned long long nr = 0;
	FILE *f;
	bool fine = true;

	if (snprintf(path, sizeof(path), "%s/trials", t->worker->state_dir) >= (int)sizeof(path) ||
	    snprintf(new, sizeof(new), "%s/trials.new", t->worker->state_dir) >= (int)sizeof(new))
		return mp_err_set(t->err, ENAMETOOLONG, "%s: too long", t->worker->state_dir);
	/* A number that begins again would let trials claim something false more often than is promised. */
	f = fopen(path, "re");
	if (!f && errno != ENOENT)
		return mp_err_set(t->err, errno, "%s: %s", path, strerror(errno));
	if (f) {
		fine = fscanf(f, "%llu", &nr) == 1;
		fclose(f);
	}
	if (!fine)
		return mp_err_set(t->err, EBADMSG, "%s: has no number of trials", path);
	*k = ++nr;
	f = fopen(new, "we");
	fine = f && fprintf(f, "%llu\n", nr) > 0 && !fflush(f) && !fsync(fileno(f));
	if (f && fclose(f))
		fine = false;
	return fine && !rename(new, path)
		       ? 0
		       : mp_err_set(t->err, errno, "%s: cannot be written", path);
}

static int new_trial(struct md_task *t, const struct mp_meter *meter, bool metered)
{
	struct mp_trial_config config = {.nr_counters = 1,
					 .weights = {1e-6},
					 .least_work = MD_BLOCK_LEAST_WORK / 10 *
						       MD_SHORT_BLOCK_PART * t->worker->pace,
					 .max_pairs = MD_TRIAL_PAIRS};
	struct mp_trial *trial;
	uint64_t k = 0;
	int ret = count_trials(t, &k);

	if (ret)
		return ret;
	config.alpha = mp_trial_alpha(k);
	if (metered) {
		config.nr_counters = meter->nr;
		config.least_work = MD_BLOCK_LEAST_WORK * MD_SHORT_BLOCK_PART * t->worker->pace;
		memcpy(config.weights, meter->weight, sizeof(config.weights));
	}
	ret = mp_trial_new(&config, &trial);
	if (ret)
		return mp_err_set(t->err, -ret, "the trial: %s", strerror(-ret));
	ret = mp_trial_save(trial, md_work_path(&t->dir, "trial").text, t->err);
	mp_trial_free(trial);
	return ret;
}

int md_step_trial_begin(struct md_task *t)
{
	struct mp_meter meter;
	bool metered = md_meter_load(md_work_path(&t->dir, "meter").text, &meter);
	int ret = new_trial(t, &meter, metered);

	/* Samples until now are the original's, and so are crashes. */
	if (!ret)
		ret = md_probation_begin(t);
	if (ret)
		return ret;
	return md_task_advance(
		t, MP_JOB_TRYING, "try", "begun",
		metered ? "the original and the new version, both with counters of their work, "
			  "are in place in turns"
			: "the original and the new version are in place in turns; its time in "
			  "the kernel stands for the work");
}

/* ---- the end --------------------------------------------------------------------------------- */

static void remove_dirs(struct md_task *t)
{
	for (enum md_variant v = MD_METERED_ORIGINAL; v <= MD_METERED_NEW; v++) {
		struct md_work_path dir = md_variant_counts(&t->dir, v);

		md_count_dir_remove(dir.text);
	}
}

static int faster(struct md_task *t, const struct mp_trial_result *r)
{
	struct md_evidence e = {.verdict = "faster", .pairs = r->nr_pairs, .gain = t->job->gain};
	int ret;

	e.gain.ratio = r->speedup;
	e.gain.lowest = r->lowest;
	e.gain.highest = r->highest;
	snprintf(e.original, sizeof(e.original), "%s", t->job->file_hash);
	snprintf(e.output, sizeof(e.output), "%s", t->job->layout);
	t->job->gain = e.gain;
	ret = md_evidence_save(&t->dir, &e, t->err);
	return ret ? ret
		   : md_task_advance(
			     t, MP_JOB_AUDITED, "tried", "faster",
			     "%.3f times as fast (%.3f to %.3f) in everyday use, by %u pairs of "
			     "blocks",
			     r->speedup, r->lowest, r->highest, r->nr_pairs);
}

static int not_faster(struct md_task *t, const char *verdict, const struct mp_trial_result *r)
{
	int ret = mp_store_reject_layout(t->worker->store, &t->job->id, t->job->layout, verdict,
					 time(NULL), t->err);

	t->job->gain.ratio = r->speedup;
	t->job->gain.lowest = r->lowest;
	t->job->gain.highest = r->highest < 1e6 ? r->highest : 0;
	return ret ? ret
		   : md_task_advance(
			     t, MP_JOB_NOT_FASTER, "tried", verdict,
			     "%.3f times as fast (%.3f to %.3f) in everyday use, by %u pairs of "
			     "blocks",
			     r->speedup, r->lowest, r->highest, r->nr_pairs);
}

static int crashed(struct md_task *t)
{
	return md_task_advance(t, MP_JOB_NOT_FASTER, "tried", "crashes",
			       "processes of the new version crashed, and none of the "
			       "original did");
}

static int undecided(struct md_task *t, const struct mp_trial_result *r)
{
	if (r->unlike >= 0)
		return md_task_advance(
			t, MP_JOB_UNDECIDED, "tried", "unlike",
			"the two versions did not get the same kind of work: the share of "
			"counter %d differs by %.1f points",
			r->unlike + 1, 100 * r->unlike_shift);
	return md_task_advance(
		t, MP_JOB_UNDECIDED, "tried", "undecided",
		"%u pairs of blocks could not tell: %.3f times as fast (%.3f to %.3f)", r->nr_pairs,
		r->speedup, r->lowest, r->highest);
}

static int conclude(struct md_task *t, struct md_live *live)
{
	struct mp_trial_result r;
	int harm = md_trying_does_harm(t, live), ret = md_live_put_back(t, live);

	if (ret || harm < 0)
		return ret ? ret : harm;
	if (harm) {
		ret = crashed(t);
		if (ret > 0)
			remove_dirs(t);
		return ret;
	}
	mp_trial_result(live->trying->trial, &r);
	if (md_live_is_filtered(t->worker, live))
		return md_task_advance(t, MP_JOB_UNDECIDED, "tried", "stopped", "%s",
				       MD_LIVE_FILTERED);
	switch (r.verdict) {
	case MP_TRIAL_FASTER: ret = faster(t, &r); break;
	case MP_TRIAL_SLOWER:
	case MP_TRIAL_EQUAL_SPEED:
	case MP_TRIAL_MUCH_SLOWER:
	case MP_TRIAL_CRASHES: ret = not_faster(t, mp_trial_verdict_name(r.verdict), &r); break;
	default: ret = undecided(t, &r);
	}
	if (ret > 0)
		remove_dirs(t);
	return ret;
}

static int stop(struct md_task *t, const char *why)
{
	int ret = md_task_put_back(t);

	if (ret)
		return ret;
	remove_dirs(t);
	return md_task_advance(t, MP_JOB_UNDECIDED, "tried", "stopped", "%s", why);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int note_progress(struct md_task *t, const struct md_trying *trying)
{
	struct mp_trial_result r;
	char text[200];

	mp_trial_result(trying->trial, &r);
	if (r.highest < 1e6 && r.lowest > 0)
		snprintf(text, sizeof(text),
			 "%u pairs of blocks so far: %.3f times as fast (%.3f to %.3f)", r.nr_pairs,
			 r.speedup, r.lowest, r.highest);
	else
		snprintf(text, sizeof(text), "%u pairs of blocks so far, too few to tell",
			 r.nr_pairs);
	return md_task_note(t, text);
}

/* Ends the trial if the processes have refused @failures times. Return: 0: it goes on; 1, -errno. */
static int end_refused(struct md_task *t, int failures, const char *why)
{
	if (failures < MD_LIVE_END)
		return 0;
	remove_dirs(t);
	return md_task_advance(t, MP_JOB_UNDECIDED, "tried", "refused",
			       "its running processes do not take the versions: %s", why);
}

/*
 * Running processes did not take the block's version: the pair is dropped. After some failures the versions are written for
 * another place; a service that has started again lies elsewhere. Return: as begin_block().
 */
static int not_running(struct md_task *t, struct md_live *live, const char *why)
{
	int failures = md_live_failed(t, live), ret;
	struct md_child_result r;

	ret = failures < 0 ? failures : md_trying_drop(t, live->trying);
	if (!ret)
		ret = end_refused(t, failures, why);
	if (ret || failures != MD_LIVE_MOVE)
		return ret;
	ret = md_running_move(t, &r);
	if (!ret)
		ret = md_versions_for_trial(t, MD_NEW_RUNNING, &r);
	if (!ret && (r.end != MD_CHILD_EXITED || r.status))
		ret = 1;
	if (ret)
		return ret < 0 ? ret : end_refused(t, MD_LIVE_END, r.reason);
	md_trying_free(live->trying);
	live->trying = NULL;
	return md_trying_new(t, &live->trying);
}

/* The block's version was refused. The other one may be in place: it does not stay there. Return: 1, -errno. */
static int not_put(struct md_task *t, struct md_live *live, const char *why)
{
	int ret = md_live_put_back(t, live);

	return ret ? ret
		   : md_task_advance(t, MP_JOB_FAILED, "tried", "failed",
				     "%s could not be put in place: %s",
				     md_variant_words(md_trying_version(live->trying)), why);
}

/* Puts the next block's version in place. Return: 0, 1: refused, and the job has another state; -errno. */
static int begin_block(struct md_task *t, struct md_live *live)
{
	struct md_trying *trying = live->trying;
	struct md_child_result r = {0};
	int ret = live->running ? md_live_may_put(t, live) : 1;

	if (ret != 1)
		return ret ? ret : md_trying_drop(t, trying);
	ret = md_trying_draw(t, live);
	if (ret)
		return ret;
	if (live->running || live->there != md_trying_version(trying)) {
		ret = md_live_put(t, live, md_trying_version(trying), &r);
		trying->swap_s = r.cpu_s;
	}
	if (ret > 0 && live->running)
		return not_running(t, live, r.reason[0] ? r.reason : "morph live failed");
	if (ret > 0)
		return not_put(t, live, r.reason[0] ? r.reason : "morph-optimize failed");
	return ret ? ret : md_trying_begin(t, live);
}

static bool is_late(const struct md_task *t)
{
	return time(NULL) - t->job->since_s > MD_TRIAL_DAYS * MP_SECONDS_PER_DAY;
}

/* CPU seconds a second that the swaps of one trial may take: all trials share what counting has before them. */
static double swap_rate(const struct md_task *t, const struct md_live *of)
{
	const struct md_worker *w = t->worker;
	bool haste = of->running && time(NULL) - t->job->since_s < MD_TRIAL_HASTE_S;
	int nr = 0;

	for (const struct md_live *live = w->live; live; live = live->next)
		nr += live->trying && !md_live_waits(live);
	return w->budget.rate / (nr ? nr : 1) * (haste ? MD_TRIAL_HASTE : 1);
}

/* Return: 0: nothing to do now; 1: the job has another state; 2: the trial is over; -errno. */
static int tick(struct md_task *t, struct md_live *live)
{
	struct md_trying *trying = live->trying;
	int ret;

	if (mp_trial_verdict(trying->trial) != MP_TRIAL_RUNNING || is_late(t) ||
	    md_live_is_filtered(t->worker, live))
		return 2;
	ret = md_trying_does_harm(t, live);
	if (ret)
		return ret < 0 ? ret : 2;
	if (trying->order < 0)
		return begin_block(t, live);
	ret = md_trying_is_over(t, live, swap_rate(t, live));
	if (ret <= 0)
		return ret;
	ret = md_trying_end(t, live);
	if (!ret && trying->order < 0) {
		live->failures = 0;
		ret = note_progress(t, trying);
	}
	if (ret || mp_trial_verdict(trying->trial) != MP_TRIAL_RUNNING)
		return ret ? ret : 2;
	return begin_block(t, live);
}

static void forget(struct md_live *live)
{
	md_trying_free(live->trying);
}

/* From here on, what is in place is what this process has put there. */
static int begin(struct md_task *t, struct md_live *live)
{
	int ret = md_live_check(t, live);

	if (ret < 0)
		return ret;
	live->forget = forget;
	if (!live->trying)
		return md_trying_new(t, &live->trying);
	/* Somebody put another file there: a part of the pair says nothing. */
	live->trying->incomplete |= ret;
	return 0;
}

static int take_turn(struct md_task *t, struct md_live *live)
{
	int ret = begin(t, live);

	if (!ret)
		ret = md_live_waits(live) ? md_live_wait(t, live) : tick(t, live);
	/* The trial may end because a version does harm. So the original goes back at once, and does not wait for another job's child. */
	if (ret == 2)
		ret = t->worker->beside ? md_live_put_back(t, live) : conclude(t, live);
	return ret;
}

int md_step_trial(struct md_task *t)
{
	struct md_live *live;
	int ret;

	if (!md_trial_may(t))
		return stop(t, "the policy does not permit trials any more");
	ret = md_live_of(t, &live);
	if (ret || live->busy)
		return ret;
	live->busy = true;
	ret = md_running_is_replaced(t) ? stop(t, MD_RUNNING_REPLACED) : take_turn(t, live);
	live->busy = false;
	return ret;
}
