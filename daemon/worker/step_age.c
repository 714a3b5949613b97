// SPDX-License-Identifier: Apache-2.0
/*
 * step_age - has the use of a program changed since its version was made? Writes a fresh version by the
 * samples of these days, beside the one that is in place, and lets morph-stats heat predict the taken branches
 * of both, by the same samples. If the old version saves so much less that the policy's margin is exceeded,
 * the original is put back, and a new round begins with the samples of these days.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/policy/defaults.h"
#include "daemon/worker/worker.h"
#include "libprof/elf/backup_dir.h"

/* The time span whose samples show how the program is used today: these days. */
#define WINDOW_S (MP_KEEP_DAYS * MP_SECONDS_PER_DAY)
/*
 * If a fresh version saves less than this part of the taken branches, nothing follows from the
 * comparison.
 */
#define LEAST_SAVING 0.02

int64_t md_age_since(const struct md_task *t)
{
	int64_t since_s = time(NULL) - WINDOW_S;

	return t->job->adopted_s > since_s ? t->job->adopted_s : since_s;
}

/* Finds the path of the kept original. Return: 0, -errno. */
static int find_original(const struct md_task *t, char *out, size_t size, struct mp_err *err)
{
	const char *own = t->worker->backup_dir;
	char *dir = own ? strdup(own) : mp_backup_default_dir(err);
	char folder[MP_BACKUP_FOLDER_MAX];
	int n;

	if (!dir)
		return own ? mp_err_set(err, ENOMEM, "out of memory") : -ENOENT;
	n = snprintf(out, size, "%s/%s/%s", dir, mp_backup_folder(&t->job->id, folder),
		     t->job->file_hash);
	free(dir);
	if (n < 0 || (size_t)n >= size)
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", t->worker->backup_dir);
	return access(out, R_OK) ? mp_err_set(err, errno, "%s: %s", out, strerror(errno)) : 0;
}

/* Samples of the program in these days. */
static int count_samples(struct md_task *t, uint64_t *out)
{
	struct mp_module *modules;
	size_t nr;
	int ret = mp_store_list_modules(t->worker->store, md_age_since(t), &modules, &nr, t->err);

	*out = 0;
	if (ret)
		return ret;
	for (size_t i = 0; i < nr; i++)
		if (mp_id_equal(&modules[i].id, &t->job->id))
			*out += modules[i].nr_samples;
	mp_store_free_modules(modules, nr);
	return 0;
}

/* Options that both programs have. */
struct options {
	char db[PATH_MAX + 8], since[40], after[PATH_MAX + 16];
};

/*
 * The part of the original's taken branches that @version saves, by these days' samples.
 * Return: 1; 0: it cannot be told; -EINTR, -errno.
 */
static int predict(struct md_task *t, struct options *o, char *original, const char *version,
		   double *saving)
{
	struct md_work_path report = md_work_path(&t->dir, "report");
	struct md_child as = {.out = report.text, .limit_s = 600};
	char *argv[] = {t->worker->stats, (char *)"heat",   o->db,    o->after,
			o->since,	  (char *)"--json", original, NULL};
	struct md_child_result r;
	json_t *root, *ratio;
	int ret;

	snprintf(o->after, sizeof(o->after), "--after=%s", version);
	ret = md_task_run(t, argv, &as, &r);
	if (ret)
		return ret;
	root = json_load_file(report.text, 0, NULL);
	ratio = json_object_get(root, "predicted_taken_ratio");
	*saving = 1 - json_number_value(ratio);
	ret = r.end == MD_CHILD_EXITED && !r.status && json_is_number(ratio);
	json_decref(root);
	unlink(report.text);
	return ret;
}

/* Return: as predict(). */
static int write_fresh(struct md_task *t, struct options *o, char *original, char *fresh)
{
	struct md_child as = {.limit_s = 3600};
	char *argv[] = {t->worker->optimize, o->db, o->since, (char *)"--report=none",
			(char *)"-o",	     fresh, original, NULL};
	struct md_child_result r;
	int ret = md_task_run(t, argv, &as, &r);

	return ret ? ret : r.end == MD_CHILD_EXITED && !r.status;
}

static int compare(struct md_task *t, double *old, double *fresh)
{
	struct md_work_path output = md_work_path(&t->dir, "fresh");
	char original[PATH_MAX];
	struct mp_err why = {""};
	struct options o;
	int ret = find_original(t, original, sizeof(original), &why);

	if (ret) /* The backup is gone, say: the version stays as it is. */
		return 0;
	snprintf(o.db, sizeof(o.db), "--db=%s", t->worker->db);
	snprintf(o.since, sizeof(o.since), "--since=@%" PRId64, md_age_since(t));
	ret = write_fresh(t, &o, original, output.text);
	if (ret == 1)
		ret = predict(t, &o, original, t->job->path, old);
	if (ret == 1)
		ret = predict(t, &o, original, output.text, fresh);
	unlink(output.text);
	return ret;
}

/* The next look is due some time from now. */
static int look_later(struct md_task *t)
{
	t->job->not_before_s = time(NULL) + (int64_t)MD_POLICY_AGE_LOOK_S;
	return mp_store_note_job(t->worker->store, t->job, t->err);
}

int md_step_age(struct md_task *t)
{
	const struct md_policy *policy = t->worker->policy;
	double old, fresh, promised = 1 - t->job->gain.predicted;
	uint64_t nr;
	int ret;

	if (t->job->not_before_s > time(NULL) || !t->worker->stats[0] ||
	    md_policy_mode_of(policy, t->rule) != MD_POLICY_ADOPT)
		return 0;
	ret = count_samples(t, &nr);
	if (ret)
		return ret;
	if (nr < policy->min_samples)
		return look_later(t);
	ret = compare(t, &old, &fresh);
	if (ret < 0)
		return ret;
	/*
	 * If no prediction was stored, or it is lower, take what the fresh version saves as the
	 * promise.
	 */
	if (t->job->gain.predicted <= 0 || promised < fresh)
		promised = fresh;
	if (!ret || fresh < LEAST_SAVING || (fresh - old) / promised <= policy->age_by)
		return look_later(t);
	return md_task_advance(t, MP_JOB_UNDOING, MD_STEP_AGE, "changed",
			       "its use has changed: by the samples of these days it saves %.1f %% "
			       "of the taken branches, and a new version %.1f %%",
			       100 * old, 100 * fresh);
}
