// SPDX-License-Identifier: Apache-2.0
/*
 * step_again - when a round that has ended is followed by another one: the policy now permits more, the
 * time `retry` has passed, or there are more samples. An upgrade also begins a round, see step_look.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/policy/deny.h"
#include "daemon/worker/worker.h"

/*
 * A round without anything to write is tried again with so many times the samples. Each try needs as many
 * more as all tries before had together, so N samples lead to at most log2(N / min-samples) tries. The
 * factor is an assumption: with a smaller one the same result would come more often.
 */
#define MORE_SAMPLES 2

/* ---- nothing to write ------------------------------------------------------------------------ */

/* Samples of the original, of all days. Return: 0, -errno. */
static int count_samples(struct md_task *t, uint64_t *nr)
{
	struct mp_module module = {0};
	int ret = mp_store_find_module(t->worker->store, &t->job->id, &module, t->err);

	*nr = ret ? 0 : module.nr_samples;
	free(module.path);
	return ret == -ENOENT ? 0 : ret;
}

/* The number of samples with which a round was tried. Older versions of Morph did not store the number. */
static uint64_t tried_with(const struct md_task *t)
{
	uint64_t least = t->worker->policy->min_samples;

	return t->job->before_samples > least ? t->job->before_samples : least;
}

static bool is_trained(const struct md_task *t)
{
	return t->rule && t->rule->train;
}

int md_step_nothing(struct md_task *t, const char *reason)
{
	uint64_t nr;
	int ret;

	if (is_trained(t))
		return md_task_advance(t, MP_JOB_REFUSED, "write", "nothing",
				       "%s; it is trained again after the time `retry'", reason);
	ret = count_samples(t, &nr);
	if (ret)
		return ret;
	t->job->before_samples = nr;
	return md_task_advance(t, MP_JOB_REFUSED, "write", "nothing",
			       "%s; it has %" PRIu64 " samples, and is tried again when it has "
			       "%" PRIu64,
			       reason, nr, MORE_SAMPLES * tried_with(t));
}

static bool retry_is_due(const struct md_task *t)
{
	return (double)(time(NULL) - t->job->since_s) >= t->worker->policy->retry_s;
}

/* Was the file refused by the policy, which now permits it? Return: 1, 0, -errno. */
static int is_permitted(struct md_task *t)
{
	char why[600];
	int ret = md_task_has_verdict(t, "profile", "refused");

	return ret <= 0 ? ret : !md_deny(t->worker->policy, t->job->path, why, sizeof(why));
}

/* The file was refused. */
static int look_for_more(struct md_task *t)
{
	char reason[160] = "some time has passed since the last try";
	uint64_t nr;
	int ret;

	/* The file at the path is not the one that was tried. */
	if (strcmp(t->now.hash, t->job->file_hash) != 0 || !t->now.hash[0])
		return 0;
	ret = is_permitted(t);
	if (ret)
		return ret < 0 ? ret : md_task_begin_again(t, "allow", "the policy now permits it");
	if (is_trained(t)) {
		if (!retry_is_due(t))
			return 0;
	} else {
		ret = count_samples(t, &nr);
		if (ret || nr / MORE_SAMPLES < tried_with(t))
			return ret;
		snprintf(reason, sizeof(reason),
			 "there was nothing to move; now it has %" PRIu64
			 " samples, at least %d times as many",
			 nr, MORE_SAMPLES);
	}
	/* Other refusals do not depend on samples. */
	ret = md_task_has_verdict(t, "write", "nothing");
	return ret <= 0 ? ret : md_task_begin_again(t, "again", reason);
}

/* ---- other ends ------------------------------------------------------------------------------ */

/* The policy changed from advise to adopt. An audit that was made counts. */
static int look_at_policy(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	struct md_evidence e;
	char hash[33];

	if (md_policy_mode_of(t->worker->policy, t->rule) != MD_POLICY_ADOPT || !t->rule ||
	    t->rule->audit == MD_AUDIT_NONE ||
	    (t->rule->audit == MD_AUDIT_IN_PROCESS &&
	     !md_policy_may_instrument(t->worker->policy, t->rule)))
		return 0;
	if (md_evidence_load(&t->dir, &e) && !strcmp(e.verdict, "faster") &&
	    !md_file_hash(output.text, hash) && !strcmp(e.output, hash))
		return md_task_advance(t, MP_JOB_AUDITED, "allow", "allowed",
				       "the policy now says: adopt");
	return md_task_begin_again(t, "allow", "the policy now says: adopt");
}

int md_step_again(struct md_task *t)
{
	switch (t->job->state) {
	case MP_JOB_ADVISED: return look_at_policy(t);
	case MP_JOB_KEPT: return md_step_age(t);
	case MP_JOB_REFUSED: return look_for_more(t);
	case MP_JOB_NOT_FASTER:
	case MP_JOB_UNDECIDED:
	case MP_JOB_UNDONE:
	case MP_JOB_FAILED:
		return retry_is_due(t)
			       ? md_task_begin_again(t, "again",
						     "some time has passed since the last try")
			       : 0;
	default: return 0;
	}
}
