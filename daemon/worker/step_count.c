// SPDX-License-Identifier: Apache-2.0
/*
 * step_count - counting windows: the steps from wanted to profiled of a program that nobody trains. For some seconds of
 * each minute a version that counts its branches is in the program's place; what everyday use makes the program
 * do is thus counted exactly. Between these times, and at the end, the original is there.
 *
 * The version is written once, with a proof. After that swaps are a matter of names (spare.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/policy/deny.h"
#include "daemon/everyday/count_dir.h"
#include "daemon/everyday/counting.h"
#include "daemon/worker/live.h"
#include "daemon/everyday/meter.h"
#include "daemon/everyday/windows.h"
#include "daemon/worker/running.h"
#include "daemon/worker/worker.h"
#include "libprof/base/clock.h"

/* ---- may it count? --------------------------------------------------------------------------- */

bool md_count_may(const struct md_task *t)
{
	const struct md_policy *policy = t->worker->policy;

	return md_policy_may_count(policy, t->rule, t->job->path) &&
	       (md_policy_may_live(policy, t->rule) || !md_running_is(&t->dir));
}

/* ---- the version that counts ----------------------------------------------------------------- */

static int write_counting(struct md_task *t, const char *dir, struct md_child_result *r)
{
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(MD_COUNTING));
	struct md_running_option live_at = md_running_option(&t->dir, MD_COUNTING);
	char counts[PATH_MAX + 16];
	char *argv[] = {
		t->worker->optimize, (char *)"instrument", (char *)"--all", (char *)"--report=none",
		counts, (char *)"-o", file.text, t->job->path,
		live_at.text[0] ? live_at.text : NULL,
		/* Atomic counters would slow threads down to a quarter. A lost count does not change a layout. */
		(char *)"--kind=edges,plain", NULL};
	struct md_child as = {0};

	snprintf(counts, sizeof(counts), "--counts=%s/%%u", dir);
	return md_task_run(t, argv, &as, r);
}

/* It cannot be counted: the round goes on with samples. */
static int count_nothing(struct md_task *t, const char *step, const char *why)
{
	int ret = md_task_has_step(t, step);

	return ret ? (ret < 0 ? ret : 0)
		   : md_task_advance(t, t->job->state, step, "by samples", "%s", why);
}

/* Return: 1: the versions go into running processes; 0: they do not; 2: they cannot, and the history has it; -errno. */
static int begin_running(struct md_task *t)
{
	struct md_child_result r;
	int ret = md_task_has_step(t, "live");

	/* What was refused in this round is not asked again. */
	if (ret)
		return ret < 0 ? ret : 0;
	ret = md_running_begin(t, &r);
	if (ret != 2)
		return ret;
	ret = md_task_advance(t, t->job->state, "live", "refused",
			      "its running processes are left alone: %s",
			      r.reason[0] ? r.reason : "morph live failed");
	return ret < 0 ? ret : 2;
}

int md_step_count_begin(struct md_task *t)
{
	struct md_work_path dir = md_variant_counts(&t->dir, MD_COUNTING);
	struct md_child_result r;
	struct stat st;
	char why[600];
	int ret, running;

	if (!lstat(t->job->path, &st) && st.st_nlink > 1)
		return count_nothing(
			t, "count",
			"it has another name (a hard link), which would keep the old bytes");
	if (md_deny(t->worker->policy, t->job->path, why, sizeof(why)))
		return md_task_advance(t, MP_JOB_REFUSED, "count", "refused", "%s", why);
	if (!t->worker->cpu_time)
		t->worker->cpu_time = md_cpu_time_open(t->err);
	if (!t->worker->cpu_time)
		return count_nothing(t, "count", t->err->msg);
	running = begin_running(t);
	if (running < 0 || running == 2)
		return running < 0 ? running : 1;
	if (!running && md_policy_is_library(t->job->path))
		return count_nothing(
			t, "count",
			"a library is counted in running processes alone, since any program may load it");
	ret = write_counting(t, dir.text, &r);
	if (ret)
		return ret;
	if (r.end != MD_CHILD_EXITED || r.status)
		return count_nothing(t, "count", r.reason[0] ? r.reason : "morph-optimize failed");
	ret = md_task_note_variant(t, MD_COUNTING);
	if (ret)
		return ret;
	/* Crashes of the version that counts are compared with those before it. */
	ret = md_probation_begin(t);
	return ret ? ret
		   : md_task_advance(
			     t, MP_JOB_COUNTING, "count", "begun",
			     running ? "a version that counts is put into its running processes at times"
				     : "a version that counts is put in place at times");
}

/* ---- windows --------------------------------------------------------------------------------- */

static void forget(struct md_live *live)
{
	md_counting_free(live->counting);
}

static int begin(struct md_task *t, struct md_live *live)
{
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(MD_COUNTING));
	struct md_work_path dir = md_variant_counts(&t->dir, MD_COUNTING);
	int ret;

	live->forget = forget;
	/* Processes of files that an earlier worker put there go on to count, but nobody watches their time. */
	ret = md_count_dir_make(dir.text, live->running, t->err);
	if (!ret)
		ret = md_counting_new(file.text, dir.text, &live->counting, t->err);
	if (!ret)
		md_windows_begin(&live->windows, t->worker->pace, live->running, mp_now_s());
	return ret;
}

/* Tells users how far it is. */
static int note_progress(struct md_task *t, const struct md_counting *c)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "it counted %.0f of at most %d seconds of its CPU time, in %zu windows",
		 md_counting_cpu_s(c), MD_WINDOWS_CPU_S, md_counting_nr(c));
	return md_task_note(t, text);
}

/* Ends the window if it is at least @least_s long. */
static int take_window(struct md_live *live, double cpu_s, double least_s, struct mp_err *err)
{
	double taken_s = cpu_s - live->windows.counted_s;

	if (taken_s <= 0 || taken_s < least_s ||
	    (least_s > 0 && !md_counting_is_due(live->counting)))
		return 0;
	live->windows.counted_s = cpu_s;
	return md_counting_window(live->counting, taken_s, err);
}

/* Reads the CPU time of the version's processes into @done, and ends a window if it is long enough. */
static int look_at_window(struct md_worker *w, struct md_live *live, struct md_done *done,
			  struct mp_err *err)
{
	int ret = md_live_done(w, live, MD_COUNTING, done);

	if (ret)
		return mp_err_set(err, -ret, "the time of processes: %s", strerror(-ret));
	if (done->incomplete)
		live->windows.counted_s = done->run_s; /* some time is missing: no window */
	return take_window(live, done->run_s, MD_WINDOW_S * w->pace, err);
}

bool md_count_windows(struct md_worker *w)
{
	bool any = false;

	for (struct md_live *live = w->live; live; live = live->next) {
		struct md_done done;
		struct mp_err err;

		if (live->busy || !live->counting || live->there != MD_COUNTING)
			continue;
		any = true;
		/* The next step meets the same error, and tells it. */
		(void)look_at_window(w, live, &done, &err);
	}
	return any;
}

/* Return: the version that counts does harm. */
static bool does_harm(const struct md_task *t, const struct md_done *done)
{
	return done->crashes > t->job->before_crashes;
}

/* Its processes do not take it: the round goes on with samples. Return: 0: it is tried again; 1; -errno. */
static int not_running(struct md_task *t, struct md_live *live, const char *why)
{
	int failures = md_live_failed(t, live);

	if (failures < MD_LIVE_MOVE)
		return failures < 0 ? failures : 0;
	return md_task_advance(t, MP_JOB_WANTED, "counted", "by samples",
			       "the version that counts could not be put into its processes: %s",
			       why);
}

static int open_window(struct md_task *t, struct md_live *live)
{
	struct md_child_result r;
	int ret = live->running ? md_live_may_put(t, live) : 1;

	if (ret != 1)
		return ret;
	ret = md_live_put(t, live, MD_COUNTING, &r);
	if (!ret)
		live->failures = 0;
	if (ret <= 0)
		return ret;
	if (live->running)
		return not_running(t, live, r.reason[0] ? r.reason : "morph live failed");
	/* It may be there nevertheless. */
	ret = md_live_put_back(t, live);
	if (ret)
		return ret;
	return md_task_advance(t, MP_JOB_FAILED, "counted", "failed",
			       "the version that counts could not be put in place: %s",
			       r.reason[0] ? r.reason : "morph-optimize failed");
}

static double least_s(const struct md_task *t)
{
	return MD_WINDOWS_LEAST_S * t->worker->pace;
}

/* Looked at after each EVERY windows: it takes tenths of a second for a large program. Return: 1, 0, -errno. */
#define EVERY 32
static int is_enough(struct md_task *t, struct md_live *live)
{
	const struct md_counting *c = live->counting;
	struct mp_meter meter;
	double more;
	int ret;

	if (md_counting_nr(c) < live->windows.next_look ||
	    md_counting_cpu_s(c) < MD_WINDOWS_ENOUGH_S * t->worker->pace)
		return 0;
	live->windows.next_look = md_counting_nr(c) + EVERY;
	/* The layout decides how long to count. A meter may be poor, but needs some windows: the trial mends its weights. */
	ret = md_counting_is_enough(c, &more, t->err);
	if (ret == 1)
		ret = md_counting_meter(c, NULL, &meter, t->err) ?: 1;
	return ret == -EAGAIN ? 0 : ret;
}

/* Return: 0: nothing to do now; 1: the job has another state; 2: counting is over; -errno. */
static int tick(struct md_task *t, struct md_live *live)
{
	struct md_done done, original;
	bool there = live->there == MD_COUNTING;
	int ret = look_at_window(t->worker, live, &done, t->err);

	if (ret)
		return ret;
	/* It also looks at what runs, before the first window. */
	ret = md_live_done(t->worker, live, MD_ORIGINAL, &original);
	if (ret)
		return mp_err_set(t->err, -ret, "the time of processes: %s", strerror(-ret));
	if (does_harm(t, &done) || md_live_is_filtered(t->worker, live))
		return 2;
	switch (md_windows_look(&t->worker->budget, &live->windows, mp_now_s(), there,
				done.run_s)) {
	case MD_WINDOWS_OPEN: return open_window(t, live);
	case MD_WINDOWS_CLOSE:
		ret = md_live_put_back(t, live);
		/* It counted until now. */
		if (!ret)
			ret = md_live_done(t->worker, live, MD_COUNTING, &done);
		if (!ret && !done.incomplete)
			ret = take_window(live, done.run_s, 0, t->err);
		if (!ret)
			ret = note_progress(t, live->counting);
		break;
	case MD_WINDOWS_STAY: break;
	case MD_WINDOWS_OVER: return 2;
	}
	if (!ret)
		ret = is_enough(t, live);
	return ret == 1 ? 2 : ret;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int import(struct md_task *t, struct md_child_result *r)
{
	struct md_work_path db = md_work_path(&t->dir, "counts.db"),
			    counts = md_work_path(&t->dir, "counts"),
			    file = md_work_path(&t->dir, md_variant_name(MD_COUNTING));
	char db_option[PATH_MAX + 8], binary[PATH_MAX + 16];
	char *argv[] = {t->worker->stats, db_option, (char *)"import", binary, counts.text, NULL};
	/* On a machine without idle time the round would stand still. */
	struct md_child as = {.priority = MD_CHILD_NICE};
	int ret;

	/* A worker that was killed may have left them, beside other counts. */
	unlink(db.text);
	unlink(md_work_path(&t->dir, "counts.db-wal").text);
	unlink(md_work_path(&t->dir, "counts.db-shm").text);
	snprintf(db_option, sizeof(db_option), "--db=%s", db.text);
	snprintf(binary, sizeof(binary), "--binary=%s", file.text);
	ret = md_task_run_beside(t, argv, &as, r);
	unlink(counts.text);
	return ret;
}

/* The counts, as a store that morph-optimize reads, and the meter. Return: as md_round_step(). */
static int take_counts(struct md_task *t, struct md_live *live)
{
	struct md_counting *c = live->counting;
	struct mp_meter meter = {0};
	struct md_child_result r;
	double more = NAN;
	size_t nr = md_counting_nr(c);
	double cpu_s = md_counting_cpu_s(c);
	int ret = md_counting_save(c, md_work_path(&t->dir, "counts").text, t->err);

	if (!ret)
		ret = import(t, &r);
	if (ret)
		return ret;
	if (r.end != MD_CHILD_EXITED || r.status)
		return md_task_advance(t, MP_JOB_FAILED, "counted", "failed",
				       "the counts could not be read: %s",
				       r.reason[0] ? r.reason : "morph-stats import failed");
	ret = md_counting_is_enough(c, &more, t->err);
	if (ret < 0)
		return ret;
	ret = md_counting_meter(c, md_work_path(&t->dir, "meter.places").text, &meter, t->err);
	if (!ret || ret == -EAGAIN)
		ret = md_meter_save(md_work_path(&t->dir, "meter").text, &meter, t->err);
	if (ret)
		return ret;
	return md_task_advance(
		t, MP_JOB_PROFILED, "counted", "done",
		"%.0f seconds of its CPU time were counted in %zu windows; by halves, "
		"more would save at most %.1f points more; %s",
		cpu_s, nr, more, md_meter_words(&meter).text);
}

/* Finds counters of loops that threads do not leave; see md_counting_exclude(). They take some milliseconds to leave others. */
static int find_endless(struct md_task *t, struct md_live *live)
{
	const struct timespec second = {.tv_sec = (time_t)t->worker->pace,
					.tv_nsec = (long)(1e9 * fmod(t->worker->pace, 1))};
	int ret = 0;

	for (int i = 0; !ret && i < 2; i++) {
		nanosleep(&second, NULL);
		ret = md_counting_exclude(live->counting, !i, t->err);
	}
	return ret;
}

static int conclude(struct md_task *t, struct md_live *live)
{
	struct md_work_path dir = md_variant_counts(&t->dir, MD_COUNTING);
	struct md_done done;
	int ret = md_live_put_back(t, live);

	if (!ret)
		ret = md_live_done(t->worker, live, MD_COUNTING, &done);
	if (!ret && does_harm(t, &done))
		return md_task_advance(t, MP_JOB_FAILED, "counted", "crashed",
				       "it crashed while a version that counts was in place");
	if (!ret && md_live_is_filtered(t->worker, live))
		return md_task_advance(t, MP_JOB_WANTED, "counted", "by samples", "%s",
				       MD_LIVE_FILTERED);
	if (!ret && !done.incomplete)
		ret = take_window(live, done.run_s, 0, t->err);
	if (!ret && live->running)
		ret = find_endless(t, live);
	if (ret)
		return ret;
	if (md_counting_cpu_s(live->counting) < least_s(t))
		ret = md_task_advance(t, MP_JOB_WANTED, "counted", "by samples",
				      "only %.1f seconds of its CPU time could be counted",
				      md_counting_cpu_s(live->counting));
	else
		ret = take_counts(t, live);
	if (ret > 0)
		md_count_dir_remove(dir.text);
	return ret;
}

/* The policy does not permit it any more. */
static int stop(struct md_task *t)
{
	struct md_work_path dir = md_variant_counts(&t->dir, MD_COUNTING);
	int ret = md_task_put_back(t);

	md_count_dir_remove(dir.text);
	return ret ? ret
		   : md_task_advance(t, MP_JOB_UNDONE, "counted", "stopped",
				     "the policy does not permit counting any more");
}

/* The program's file was replaced, so counts and CPU time are of different processes. The round goes on with samples. */
static int end_replaced(struct md_task *t)
{
	struct md_work_path dir = md_variant_counts(&t->dir, MD_COUNTING);
	int ret = md_task_put_back(t);

	if (ret)
		return ret;
	md_count_dir_remove(dir.text);
	return md_task_advance(t, MP_JOB_WANTED, "counted", "by samples", "%s",
			       MD_RUNNING_REPLACED);
}

static int take_turn(struct md_task *t, struct md_live *live)
{
	/* A worker that was killed may have left a version in place, and somebody else may have taken it away. */
	int ret = md_live_check(t, live);

	if (ret >= 0)
		ret = live->counting ? 0 : begin(t, live);
	if (!ret)
		ret = md_live_waits(live) ? md_live_wait(t, live) : tick(t, live);
	/* Counting may end because the version does harm. So the original goes back at once, and does not wait for another job's child. */
	if (ret == 2)
		ret = t->worker->beside ? md_live_put_back(t, live) : conclude(t, live);
	return ret;
}

int md_step_count(struct md_task *t)
{
	struct md_live *live;
	int ret;

	if (!md_count_may(t))
		return stop(t);
	ret = md_live_of(t, &live);
	if (ret || live->busy)
		return ret;
	live->busy = true;
	ret = md_running_is_replaced(t) ? end_replaced(t) : take_turn(t, live);
	live->busy = false;
	return ret;
}
