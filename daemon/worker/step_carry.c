// SPDX-License-Identifier: Apache-2.0
/*
 * step_carry - a round after an upgrade begins with the profile of the version before, as far as both
 * versions have the same code. Decides whether such a profile is used, and when the fingerprint is
 * made that the next upgrade needs. morph-optimize carries the samples over (libprof/stale/).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/idle.h"
#include "daemon/worker/worker.h"
#include "libprof/base/child.h"
#include "libprof/store/store_fingerprint.h"

/* With less of the samples, the round waits for samples of the new version. */
#define LEAST_SHARE 0.8
/* A fingerprint describes functions that had samples when it was made, so it is made again. */
#define FINGERPRINT_AGE_S MP_SECONDS_PER_DAY

/* ---- the profile of the version before ------------------------------------------------------- */

/* Are both paths in one directory? A library's file name may change with its version. */
static bool has_same_directory(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return x && y && x - a == y - b && !strncmp(a, b, (size_t)(x - a));
}

int md_step_carry(struct md_task *t, uint64_t nr_own)
{
	const struct md_worker *w = t->worker;
	struct mp_module before = {0};
	uint64_t nr;
	int ret = md_task_has_step(t, "carry");

	if (ret)
		return ret < 0 ? ret : 0;
	ret = mp_store_find_other_build(w->store, &t->now.id, t->job->path, &before, t->err);
	nr = ret || !has_same_directory(before.path, t->job->path) ? 0 : before.nr_samples;
	free(before.path);
	if (ret && ret != -ENOENT)
		return ret;
	if (nr < w->policy->min_samples)
		return 0;
	return md_task_advance(t, MP_JOB_PROFILED, "carry", "tried",
			       "it has %" PRIu64 " samples of its own, and %" PRIu64
			       " of the version before, which are carried over",
			       nr_own, nr);
}

void md_carried_read(json_t *report, struct md_carried *out)
{
	json_t *stale = json_object_get(report, "stale");

	*out = (struct md_carried){.used = json_is_object(stale)};
	if (!out->used)
		return;
	out->samples = (uint64_t)json_integer_value(json_object_get(stale, "samples"));
	out->samples_matched =
		(uint64_t)json_integer_value(json_object_get(stale, "samples_matched"));
	out->funcs = (uint64_t)json_integer_value(json_object_get(stale, "functions"));
	out->funcs_matched =
		(uint64_t)json_integer_value(json_object_get(stale, "functions_matched"));
}

int md_step_matched(struct md_task *t, const struct md_carried *c)
{
	double share = c->samples ? (double)c->samples_matched / (double)c->samples : 0;
	bool enough = share >= LEAST_SHARE;
	int ret = md_task_has_step(t, "match");

	if (ret)
		return ret < 0 ? ret : 0;
	ret = md_task_advance(t, enough ? t->job->state : MP_JOB_WANTED, "match",
			      enough ? "done" : "too-little",
			      "%.1f %% of the samples of the version before (%" PRIu64
			      " of %" PRIu64 ") lie in code that this version has, too; %" PRIu64
			      " of %" PRIu64 " functions were found%s",
			      100 * share, c->samples_matched, c->samples, c->funcs_matched,
			      c->funcs, enough ? "" : ": too few to be used");
	return ret < 0 ? ret : !enough;
}

int md_step_unmatched(struct md_task *t, const char *reason)
{
	int ret = md_task_has_step(t, "carry");

	if (ret <= 0)
		return ret;
	ret = md_task_has_step(t, "match");
	if (ret)
		return ret < 0 ? ret : 0;
	return md_task_advance(t, MP_JOB_WANTED, "match", "too-little",
			       "the samples of the version before do not suffice: %s", reason);
}

/* ---- the fingerprint for the next upgrade ---------------------------------------------------- */

/* Can an upgrade begin a round of this job, and is the original still there? */
static bool may_be_upgraded(enum mp_job_state state)
{
	return state == MP_JOB_ADVISED || state == MP_JOB_ADOPTED || state == MP_JOB_KEPT ||
	       state == MP_JOB_UNDONE || state == MP_JOB_NOT_FASTER || state == MP_JOB_UNDECIDED;
}

/* Return: 1: its fingerprint is missing, or of less than it knows today; 0; -errno. */
static int needs_fingerprint(struct md_task *t)
{
	struct md_worker *w = t->worker;
	struct mp_module module = {0};
	int64_t made_s = 0;
	int ret = mp_store_find_module(w->store, &t->job->id, &module, t->err);

	free(module.path);
	if (ret || module.nr_samples < w->policy->min_samples)
		return ret == -ENOENT ? 0 : ret;
	ret = mp_store_fingerprint_time(w->store, module.key, &made_s, t->err);
	if (ret || (made_s && (made_s >= module.last_s || time(NULL) - made_s < FINGERPRINT_AGE_S)))
		return ret;
	ret = md_task_has_step(t, "remember");
	return ret < 0 ? ret : !ret;
}

int md_step_remember(struct md_task *t)
{
	struct md_worker *w = t->worker;
	char stats[PATH_MAX], db[PATH_MAX + 8], samples[64], backup[PATH_MAX + 16];
	char id[2 * MP_BUILD_ID_MAX + 16] = "--build-id=";
	char *argv[8] = {stats, db, (char *)"remember", samples, id};
	struct md_work_path table = md_work_path(&t->dir, "table");
	struct md_child as = {.out = table.text};
	struct md_child_result r;
	char why[256];
	int ret;

	if (!may_be_upgraded(t->job->state) || !t->job->id.build_id_len ||
	    mp_child_find("morph-stats", stats, NULL) ||
	    (!w->always && !md_idle_check(w->policy, why, sizeof(why))))
		return 0;
	ret = needs_fingerprint(t);
	if (ret <= 0)
		return ret;
	snprintf(db, sizeof(db), "--db=%s", w->db);
	snprintf(samples, sizeof(samples), "--min-samples=%" PRIu64, w->policy->min_samples);
	mp_id_format_build_id(&t->job->id, id + strlen(id));
	if (w->backup_dir) {
		snprintf(backup, sizeof(backup), "--backup-dir=%s", w->backup_dir);
		argv[5] = backup;
	}
	ret = md_task_run(t, argv, &as, &r);
	unlink(table.text);
	if (ret || (r.end == MD_CHILD_EXITED && !r.status))
		return ret;
	/* Once in a round: another try would fail like this one. */
	return md_task_advance(t, t->job->state, "remember", "failed",
			       "no fingerprint for the next upgrade could be kept: %s",
			       r.reason[0] ? r.reason : "morph-stats remember failed");
}
