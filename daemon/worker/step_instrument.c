// SPDX-License-Identifier: Apache-2.0
/* step_instrument - puts a version that times its functions in the program's place. */
#include <string.h>

#include "daemon/policy/deny.h"
#include "daemon/worker/worker.h"
#include "libprof/cli/exit_status.h"

int md_step_instrument(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	bool there = !strcmp(t->now.hash, t->job->layout);
	struct md_child_result r;
	char why[600], hash[33];
	int ret;

	if (!there && md_deny(t->worker->policy, t->job->path, why, sizeof(why)))
		return md_task_advance(t, MP_JOB_REFUSED, "instrument", "refused", "%s", why);
	if (!there && (md_file_hash(output.text, hash) || strcmp(hash, t->job->layout)))
		return md_task_advance(t, MP_JOB_FAILED, "instrument", "failed",
				       "the version that was written is not there any more");
	if (!there && !t->worker->collector[0])
		return md_task_advance(t, MP_JOB_FAILED, "instrument", "failed",
				       "morphd is not installed beside morph-worker");
	ret = md_probation_begin(t);
	if (!ret && !there)
		ret = md_work_dir_train(&t->dir, md_task_user(t), t->err);
	if (!ret && !there)
		ret = md_task_replace(t, MD_NEW, false, &r);
	if (ret)
		return ret;
	if (!there && (r.end != MD_CHILD_EXITED || r.status))
		return md_task_advance(t,
				       r.end == MD_CHILD_EXITED && r.status == MP_EXIT_REFUSED
					       ? MP_JOB_REFUSED
					       : MP_JOB_FAILED,
				       "instrument", "refused", "%s",
				       r.reason[0] ? r.reason : "morph-optimize failed");
	return md_task_advance(t, MP_JOB_AUDITING, "instrument", "done",
			       "a version that times its functions is in place");
}
