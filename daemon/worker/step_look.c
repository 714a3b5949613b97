// SPDX-License-Identifier: Apache-2.0
/*
 * step_look - which file lies at a job's path: the original, the output, another one, or none; and what that
 * means for the job. Called before each step.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/worker/live.h"
#include "daemon/worker/running.h"
#include "daemon/worker/worker.h"

static int first_look(struct md_task *t)
{
	if (t->job->state == MP_JOB_REFUSED)
		return t->now.is_output
			       ? 0
			       : md_task_begin_again(t, "found", "the file can be looked at now");
	if (t->now.is_output)
		return md_task_advance(t, MP_JOB_REFUSED, "look", "refused",
				       "it is a version that Morph made already; morph-optimize "
				       "restore puts the original back");
	t->job->id = t->now.id;
	snprintf(t->job->file_hash, sizeof(t->job->file_hash), "%s", t->now.hash);
	return 0;
}

/* The bytes are the output's. Return: as md_round_step(); 0: the step goes on. */
static int output_is_there(struct md_task *t)
{
	switch (t->job->state) {
	case MP_JOB_AUDITING:
	case MP_JOB_TRYING: return 0;
	case MP_JOB_VERIFIED: /* put in place to be audited, but killed before it was stored */
		if (t->now.audits)
			return md_step_instrument(t);
		break;
	case MP_JOB_AUDITED: /* adopted, but killed before it was stored */
	case MP_JOB_ADOPTED:
	case MP_JOB_KEPT:
	case MP_JOB_UNDOING: return 0;
	case MP_JOB_ADVISED:
	case MP_JOB_UNDECIDED:
		if (md_probation_begin(t))
			return -EIO;
		return md_task_advance(t, MP_JOB_ADOPTED, "adopt", "by hand",
				       "somebody put the new version in place");
	default: break;
	}
	return md_task_advance(t, MP_JOB_REFUSED, "look", "refused",
			       "somebody put the new version in place");
}

/* The bytes are the original's. */
static int original_is_there(struct md_task *t)
{
	if (t->job->state != MP_JOB_ADOPTED && t->job->state != MP_JOB_KEPT)
		return 0;
	if (md_running_is(&t->dir) && md_running_undo(t))
		return -EIO;
	return md_task_advance(t, MP_JOB_UNDONE, "undo", "by hand",
			       "somebody put the original back");
}

static int file_is_gone(struct md_task *t)
{
	if (t->job->state == MP_JOB_GONE)
		return 0;
	if (md_running_end(t))
		return -EIO;
	md_work_dir_remove(&t->dir);
	return md_task_advance(t, MP_JOB_GONE, "gone", "gone", "there is no such file any more");
}

/* ---- changes during a step ------------------------------------------------------------------- */

/* ---- before a step --------------------------------------------------------------------------- */

/*
 * The clock was set back: what changes from now on has an earlier time than the state's beginning. So the state begins now.
 * Return: it was.
 */
static bool mend_time(struct md_task *t)
{
	int64_t now_s = time(NULL);

	if (t->job->since_s <= now_s)
		return false;
	t->job->since_s = now_s;
	/* If it cannot be stored, the next look mends it again. */
	(void)mp_store_note_job(t->worker->store, t->job, t->err);
	return true;
}

/*
 * A look at a job without work must cost little: the bytes of a file that did not change since the
 * job's state began are known. A renamed or written file has a newer time of change.
 */
static bool is_known(struct md_task *t)
{
	struct mp_job *job = t->job;
	struct stat st;
	bool in_use = job->state == MP_JOB_ADOPTED || job->state == MP_JOB_KEPT;

	if (!in_use && job->state != MP_JOB_WANTED && !mp_job_state_ends(job->state))
		return false;
	if (!job->file_hash[0] || job->state == MP_JOB_GONE || (in_use && !job->layout[0]) ||
	    lstat(job->path, &st) || !S_ISREG(st.st_mode) || st.st_ctim.tv_sec >= job->since_s)
		return false;
	t->now = (struct md_file_state){
		.id = job->id, .size = (uint64_t)st.st_size, .changed = st.st_ctim};
	snprintf(t->now.hash, sizeof(t->now.hash), "%.32s", in_use ? job->layout : job->file_hash);
	return true;
}

/* One of the job's versions, as the worker put it there. */
static bool is_ours(struct md_task *t)
{
	struct md_variants variants;
	enum md_variant there;
	const char *hash;

	if ((t->job->state != MP_JOB_COUNTING && t->job->state != MP_JOB_TRYING) ||
	    !md_live_knows(t, &there))
		return false;
	md_variants_load(&t->dir, &variants);
	hash = there == MD_ORIGINAL || md_running_is(&t->dir) ? t->job->file_hash
							      : variants.hash[there];
	t->now = (struct md_file_state){.id = t->job->id};
	snprintf(t->now.hash, sizeof(t->now.hash), "%.32s", hash);
	return hash[0];
}

int md_step_look(struct md_task *t)
{
	struct mp_err why = {""};
	int ret;

	/* After mend_time(), is_known() would trust a file that was changed before, too. */
	if ((!mend_time(t) && is_known(t)) || is_ours(t))
		return 0;
	ret = md_file_look(t->job->path, &t->now, &why);
	if (ret == -ENOENT)
		return file_is_gone(t);
	if (ret == -ENOEXEC || ret == -EBADMSG || ret == -ELOOP)
		return t->job->state == MP_JOB_REFUSED ? 0
						       : md_task_advance(t, MP_JOB_REFUSED, "look",
									 "refused", "%s", why.msg);
	if (ret)
		return mp_err_set(t->err, -ret, "%s", why.msg);
	if (t->job->state == MP_JOB_GONE)
		return md_task_begin_again(t, "found", "the file is there again");
	if (!t->job->file_hash[0])
		return first_look(t);
	if (!strcmp(t->now.hash, t->job->file_hash))
		return original_is_there(t);
	if (t->job->layout[0] && !strcmp(t->now.hash, t->job->layout))
		return output_is_there(t);
	if (!t->now.is_output)
		return md_task_begin_again(t, "upgrade", MD_UPGRADED);
	/*
	 * One of the job's versions, or another one that was made of its original: the step puts the original back. Who was
	 * asked to undo while versions were in place in turns may have been killed before it did.
	 */
	if ((t->job->state == MP_JOB_COUNTING || t->job->state == MP_JOB_TRYING ||
	     t->job->state == MP_JOB_UNDOING) &&
	    mp_id_equal(&t->now.original, &t->job->id))
		return 0;
	if (t->job->state == MP_JOB_REFUSED)
		return 0;
	return md_task_advance(
		t, MP_JOB_REFUSED, "look", "refused",
		"another version that Morph made is in place; morph-optimize restore "
		"puts the original back");
}
