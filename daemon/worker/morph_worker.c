// SPDX-License-Identifier: Apache-2.0
/*
 * morph-worker - optimises, audits and adopts what the policy allows, one step after the other,
 * while the machine is idle. This file holds the command line and the loop over jobs.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/idle.h"
#include "daemon/worker/live.h"
#include "daemon/worker/old_backups.h"
#include "daemon/worker/queue.h"
#include "daemon/worker/worker.h"
#include "libprof/base/child.h"
#include "libprof/base/clock.h"
#include "libprof/base/text.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/options.h"
#include "libprof/cli/program.h"

/* Between two looks at all jobs while some are live, in seconds. */
#define LOOK_S 30
/* A second has so many parts for a version that counts. */
#define PARTS 5

#define MP_OPTIONS struct options

struct options {
	const char *config, *db, *state_dir, *backup_dir, *coredumps;
	bool check, now;
	double pace;
	struct mp_words programs;
	char config_buf[PATH_MAX], db_buf[PATH_MAX], state_buf[PATH_MAX], backup_buf[PATH_MAX];
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "config", 0, config, "DIR", "The policy's directory (default: /etc/morph)"),
	MP_VALUE(TEXT, "db", 0, db, "FILE", "The store (default: see FILES in the man page)"),
	MP_VALUE(TEXT, "state-dir", 0, state_dir, "DIR", "Where work in progress lies"),
	MP_VALUE(TEXT, "backup-dir", 0, backup_dir, "DIR",
		 "Where originals are kept, as in morph-optimize"),
	MP_FLAG("check", check, "Check the policy and exit"),
	MP_FLAG("now", now, "Do not ask whether the machine is idle, nor for the day's budget"),
	/* For tests: versions take turns so much faster; where core files are. */
	MP_NUMBER("lab-pace", 0, pace, 0.001, 1, "FACTOR", NULL),
	MP_VALUE(TEXT, "lab-coredumps", 0, coredumps, "DIR", NULL), MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (o->check && o->programs.nr)
		argp_error(state, "--check takes no program");
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "[PROGRAM...]",
	.words = MP_AT(programs),
	.most = INT_MAX,
	.check = check,
	.doc = "Optimise, audit and adopt what morph.conf(5) allows, while nobody wants the machine: one "
	       "step after the other, each of which can be repeated after a crash. With PROGRAM, work on "
	       "these files alone, and begin a new round for those whose round has ended.\v"
	       "Exit status: 0 done, or stopped because the machine is wanted; 1 failed; 2 usage, or an "
	       "error in the policy."};

static void say(const char *path, const char *text)
{
	char name[PATH_MAX], shown[1200];

	fprintf(stderr, "morph-worker: %s%s%s\n",
		path ? mp_text_escape(path, name, sizeof(name)) : "", path ? ": " : "",
		mp_text_escape(text, shown, sizeof(shown)));
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Then this worker, which may stay for days, ends. The next one, which a timer starts, reads the policy. */
static bool policy_has_changed(struct md_worker *w)
{
	if (!md_policy_has_changed(w->policy))
		return false;
	snprintf(w->why, sizeof(w->why), "the policy was changed: the next start goes on");
	return true;
}

/* May the next step begin? */
static bool may_go_on(struct md_worker *w, struct mp_err *err)
{
	struct mp_spent spent;

	if (md_child_is_stopped()) {
		snprintf(w->why, sizeof(w->why), "told to stop");
		return false;
	}
	if (policy_has_changed(w))
		return false;
	if (w->always)
		return true;
	if (mp_store_read_spent(w->store, time(NULL), &spent, err)) {
		snprintf(w->why, sizeof(w->why), "%.200s", err->msg);
		return false;
	}
	if ((double)spent.cpu_ms >= 1000 * md_policy_day_s(w->policy)) {
		snprintf(w->why, sizeof(w->why), "the CPU time of today is used up");
		return false;
	}
	if (spent.disk_bytes >= w->policy->disk_bytes) {
		snprintf(w->why, sizeof(w->why), "what may be written today is written");
		return false;
	}
	/* If the policy permits counting, the worker does not wait for an idle machine: its budget limits it. */
	return w->policy->counting || md_idle_check(w->policy, w->why, sizeof(w->why));
}

static void say_step(const struct mp_job *job)
{
	char text[1200];

	snprintf(text, sizeof(text), "%s%s%.1000s", mp_job_state_name(job->state),
		 job->detail[0] ? ": " : "", job->detail);
	say(job->path, text);
}

/* Do steps in this state only look at files and samples, at hardly any cost? */
static bool is_cheap(const struct mp_job *job)
{
	if (job->state == MP_JOB_KEPT && job->not_before_s <= time(NULL))
		return false;
	return mp_job_state_ends(job->state) || job->state == MP_JOB_WANTED ||
	       mp_job_state_in_place(job->state);
}

/*
 * Steps of other jobs take long, and meanwhile a user may have asked for something else. Return: 0: @job is as the store
 * has it; -ENOENT: it has no such job any more; -errno.
 */
static int reload(struct md_worker *w, struct mp_job *job, struct mp_err *err)
{
	struct mp_job now;
	int ret = mp_store_find_job(w->store, job->path, &now, err);

	if (ret)
		return ret;
	mp_store_fini_job(job);
	*job = now;
	return 0;
}

/* Takes steps of @job until nothing is to be done. Return: 0, -EINTR: stop, -errno. */
static int work_on(struct md_worker *w, struct mp_job *job, struct mp_err *err)
{
	int ret;

	do {
		ret = reload(w, job, err);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
		/* A version that must be undone does not wait for an idle machine. */
		if (md_child_is_stopped() || (!is_cheap(job) && !may_go_on(w, err)))
			return -EINTR;
		ret = md_round_step(w, job, err);
		if (ret > 0)
			say_step(job);
	} while (ret > 0);
	return ret;
}

static bool is_chosen(const struct options *o, const struct mp_job *job)
{
	for (int i = 0; i < o->programs.nr; i++)
		if (!strcmp(o->programs.list[i], job->path))
			return true;
	return !o->programs.nr;
}

/* Sorts the jobs by expected gain if several are ready, and if there is time to estimate it. */
static int put_in_order(struct md_worker *w, const struct options *o, struct mp_job *jobs,
			size_t nr, struct mp_err *err)
{
	json_t *order;
	size_t nr_ready;
	int ret = md_queue_sort(w->store, w->policy, NULL, jobs, nr, &nr_ready, err);

	if (ret || nr_ready < 2 || o->programs.nr == 1 || !w->morph[0] || !may_go_on(w, err))
		return ret;
	ret = md_queue_estimate(w, w->morph, &order, err);
	if (!ret && order)
		ret = md_queue_sort(w->store, w->policy, order, jobs, nr, &nr_ready, err);
	json_decref(order);
	return ret;
}

static bool is_in_turns(const struct mp_job *job)
{
	return job->state == MP_JOB_COUNTING || job->state == MP_JOB_TRYING;
}

/*
 * A step has failed. A version may be in place that takes turns: the original gets back there, and the job rests until the
 * next look at all jobs. The others go on.
 */
static void step_failed(struct md_worker *w, struct mp_job *job, const struct mp_err *err)
{
	struct mp_err why = {""};
	char both[2 * sizeof(why.msg) + 8];

	if (!is_in_turns(job) || !md_round_leave(w, job, &why)) {
		say(job->path, err->msg);
		md_live_drop(w, job->path);
		return;
	}
	/* The job stays live, so that the next turn, in a second, and the worker's end try again. */
	snprintf(both, sizeof(both), "%s; %s", err->msg, why.msg);
	if (md_live_is_news(w, job->path, both))
		say(job->path, both);
}

/* *@failed: set to the error of a job, if one fails. Return: 0; -errno: an error of all. */
static int work(struct md_worker *w, const struct options *o, int *failed, struct mp_err *err)
{
	struct mp_job *jobs;
	size_t nr;
	int ret = mp_store_list_jobs(w->store, &jobs, &nr, err);

	if (ret)
		return ret;
	ret = put_in_order(w, o, jobs, nr, err);
	if (ret) {
		mp_store_free_jobs(jobs, nr);
		return ret;
	}
	for (size_t i = 0; i < nr; i++) {
		if (!is_chosen(o, &jobs[i]))
			continue;
		ret = work_on(w, &jobs[i], err);
		if (ret == -EINTR)
			/* Go on with the cheap steps of other jobs, unless the worker must end. */
			if (md_child_is_stopped())
				break;
		if (ret && ret != -EINTR) {
			step_failed(w, &jobs[i], err);
			*failed = ret;
		}
	}
	mp_store_free_jobs(jobs, nr);
	if (w->why[0])
		say(NULL, w->why);
	return 0;
}

/* ---- versions in turns ----------------------------------------------------------------------- */

/*
 * Looks at the jobs whose versions are in place in turns. @beside: while a child works for another job; what takes
 * long then waits. Return: as work().
 */
static int look_at_live(struct md_worker *w, bool beside, int *failed, struct mp_err *err)
{
	struct mp_job *jobs;
	size_t nr;
	int ret;

	if (!md_live_any(w) || w->beside)
		return 0;
	ret = mp_store_list_jobs(w->store, &jobs, &nr, err);
	if (ret)
		return ret;
	w->beside = beside;
	for (size_t i = 0; i < nr; i++) {
		if (!is_in_turns(&jobs[i]) || !md_live_has(w, jobs[i].path))
			continue;
		ret = reload(w, &jobs[i], err);
		if (ret == -ENOENT || (!ret && !is_in_turns(&jobs[i])))
			continue;
		if (!ret)
			ret = md_round_step(w, &jobs[i], err);
		if (ret >= 0)
			md_live_is_news(w, jobs[i].path, "");
		if (ret > 0)
			say_step(&jobs[i]);
		else if (ret && ret != -EINTR) {
			step_failed(w, &jobs[i], err);
			*failed = ret;
		}
	}
	w->beside = false;
	md_live_keep(w, jobs, nr);
	mp_store_free_jobs(jobs, nr);
	return 0;
}

static void look_beside(void *arg)
{
	struct mp_err err = {""};
	int failed;

	look_at_live(arg, true, &failed, &err);
}

/* The originals go back: nobody would take the versions away again. */
static int put_originals_back(struct md_worker *w, struct mp_err *err)
{
	struct mp_job *jobs;
	size_t nr;
	int failed = 0, ret = md_live_any(w) ? mp_store_list_jobs(w->store, &jobs, &nr, err) : 1;

	if (ret)
		return ret < 0 ? ret : 0;
	for (size_t i = 0; i < nr; i++)
		if (is_in_turns(&jobs[i])) {
			ret = md_round_leave(w, &jobs[i], err);
			failed = ret ? ret : failed;
		}
	mp_store_free_jobs(jobs, nr);
	return failed;
}

/* A second. The windows of a version that counts are shorter. */
static void pause_between_looks(struct md_worker *w)
{
	int parts = md_count_windows(w) ? PARTS : 1;
	double part_s = w->pace / parts;
	const struct timespec part = {.tv_sec = (time_t)part_s,
				      .tv_nsec = (long)(1e9 * (part_s - (double)(time_t)part_s))};

	for (int i = 0; i < parts && !md_child_is_stopped(); i++) {
		if (i)
			md_count_windows(w);
		nanosleep(&part, NULL);
	}
}

/* As long as versions are in place in turns, and the policy is what it was, the worker stays. */
static int stay(struct md_worker *w, const struct options *o, int *failed, struct mp_err *err)
{
	double looked_s = mp_now_s();
	int ret = 0;

	md_child_each_second(look_beside, w);
	while (!ret && md_live_any(w) && !md_child_is_stopped()) {
		pause_between_looks(w);
		ret = look_at_live(w, false, failed, err);
		/* A job whose turns are over goes on at once. */
		if (ret || (md_live_any(w) && mp_now_s() - looked_s < LOOK_S * w->pace))
			continue;
		looked_s = mp_now_s();
		w->why[0] = 0;
		if (policy_has_changed(w)) {
			say(NULL, w->why);
			break;
		}
		ret = md_queue_fill(w->store, w->policy, time(NULL), err);
		if (!ret)
			ret = work(w, o, failed, err);
	}
	md_child_each_second(NULL, NULL);
	if (put_originals_back(w, err) && !ret)
		ret = -EIO;
	md_live_fini(w);
	return ret;
}

/* ---- start --------------------------------------------------------------------------------- */

static int ask_for(struct md_worker *w, struct options *o, struct mp_err *err)
{
	int ret = 0;

	for (int i = 0; !ret && i < o->programs.nr; i++) {
		char *real = realpath(o->programs.list[i], NULL);

		if (!real)
			return mp_err_set(err, errno, "%s: %s", o->programs.list[i],
					  strerror(errno));
		o->programs.list[i] = real;
		ret = mp_store_want_job(w->store, real, MP_JOB_BY_REQUEST, (uint32_t)getuid(), true,
					time(NULL), NULL, err);
	}
	return ret;
}

/* Programs run in other directories. */
static int make_absolute(const char **path, char buf[PATH_MAX], struct mp_err *err)
{
	char cwd[PATH_MAX];

	if (!*path || **path == '/')
		return 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return mp_err_set(err, errno, "the current directory: %s", strerror(errno));
	if (snprintf(buf, PATH_MAX, "%s/%s", cwd, *path) >= PATH_MAX)
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", *path);
	*path = buf;
	return 0;
}

static int choose_paths(struct options *o, struct mp_err *err)
{
	int ret = make_absolute(&o->config, o->config_buf, err);

	if (!ret)
		ret = make_absolute(&o->db, o->db_buf, err);
	if (!ret)
		ret = make_absolute(&o->state_dir, o->state_buf, err);
	if (!ret)
		ret = make_absolute(&o->backup_dir, o->backup_buf, err);

	if (!ret && !o->config) {
		ret = md_policy_default_dir(o->config_buf, sizeof(o->config_buf), err);
		o->config = o->config_buf;
	}
	if (!ret && !o->db) {
		ret = mp_store_default_path(o->db_buf, sizeof(o->db_buf), true, err);
		o->db = o->db_buf;
	}
	if (!ret && !o->state_dir) {
		ret = md_state_default_dir(o->state_buf, sizeof(o->state_buf), err);
		o->state_dir = o->state_buf;
	}
	return ret;
}

/* Originals whose files are gone. */
static int drop_backups(struct md_worker *w, struct mp_err *err)
{
	char notes[PATH_MAX];

	if (snprintf(notes, sizeof(notes), "%s/old-backups", w->state_dir) >= (int)sizeof(notes))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", w->state_dir);
	return md_old_backups_drop(w->backup_dir, notes, w->policy->retention_s, time(NULL), say,
				   err);
}

static int run(struct options *o, const struct md_policy *policy, struct mp_err *err)
{
	struct md_worker w = {.policy = policy,
			      .db = o->db,
			      .state_dir = o->state_dir,
			      .backup_dir = o->backup_dir,
			      .always = o->now,
			      .coredumps = o->coredumps,
			      .pace = o->pace > 0 ? o->pace : 1};
	int lock = md_state_lock(o->state_dir, err), ret;

	if (lock < 0)
		return lock;
	md_budget_begin(&w.budget, policy, w.pace, mp_now_s());
	md_child_share_lock(lock);
	ret = mp_child_find("morph-optimize", w.optimize, err);
	if (!ret)
		ret = mp_child_find("morph-audit", w.audit, err);
	if (!ret && mp_child_find("morph-stats", w.stats, NULL))
		w.stats[0] = '\0';
	if (!ret && mp_child_find("morphd", w.collector, NULL))
		w.collector[0] = '\0';
	if (!ret && mp_child_find("morph", w.morph, NULL))
		w.morph[0] = '\0';
	if (!ret)
		ret = mp_store_open(o->db, MP_STORE_WRITE, &w.store, err);
	if (!ret)
		ret = md_queue_drop_gone(&w, time(NULL), say, err);
	if (!ret)
		ret = drop_backups(&w, err);
	if (!ret)
		ret = md_queue_fill(w.store, policy, time(NULL), err);
	if (!ret)
		ret = ask_for(&w, o, err);
	/* Also after one job's error: versions of others may be in place. */
	if (!ret) {
		int failed = 0, all = work(&w, o, &failed, err);

		ret = stay(&w, o, &failed, err);
		ret = all ? all : ret ? ret : failed;
	}
	mp_store_close(w.store);
	close(lock);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct md_policy policy = {0};
	struct mp_err err = {""};
	int ret, status = MP_EXIT_FAILED;

	mp_program_init("morph-worker");
	mp_options_read(&usage, argc, argv, &o, NULL);
	md_child_catch_signals();
	ret = choose_paths(&o, &err);
	if (!ret) {
		ret = md_policy_read(o.config, &policy, &err);
		status = ret ? MP_EXIT_USAGE : MP_EXIT_FAILED;
	}
	if (!ret && o.check)
		printf("%s: %zu rules\n", o.config, policy.nr_rules);
	else if (!ret)
		ret = run(&o, &policy, &err);
	if (ret && err.msg[0])
		say(NULL, err.msg);
	md_policy_fini(&policy);
	return ret ? status : 0;
}
