// SPDX-License-Identifier: Apache-2.0
/* task - what all steps need: the end of a step, running a program; see worker.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/running.h"
#include "daemon/worker/worker.h"
#include "libprof/store/jobs/store_history.h"
#include "libprof/store/store_outputs.h"

/* Was the file, or another one, changed since the look? */
static bool has_changed(const struct md_task *t, struct stat *st)
{
	const struct timespec *was = &t->now.changed;

	return (was->tv_sec || was->tv_nsec) && !lstat(t->job->path, st) &&
	       (st->st_ctim.tv_sec != was->tv_sec || st->st_ctim.tv_nsec != was->tv_nsec);
}

/*
 * Return: the time at which a state begins that is stored now.
 * is_known() trusts the time at which a state began. A file that was changed before that time, but after the
 * look, would never be looked at again. So the state begins at that change.
 */
static int64_t begin_of_state(const struct md_task *t)
{
	int64_t now_s = time(NULL);
	struct stat st;

	return has_changed(t, &st) && st.st_ctim.tv_sec < now_s ? st.st_ctim.tv_sec : now_s;
}

/*
 * The file may have been changed since md_step_look(). Return: 1: it was upgraded, and a new round has begun;
 * 0: it was not, or a step of Morph changed it; -errno.
 */
static int look_again(struct md_task *t)
{
	const struct mp_job *job = t->job;
	struct md_file_state now;
	struct mp_err why;
	struct stat st;

	/* If the file cannot be read, the next look says so. */
	if (!has_changed(t, &st) || !job->file_hash[0] || md_file_look(job->path, &now, &why))
		return 0;
	t->now = now;
	if (now.is_output || !strcmp(now.hash, job->file_hash) || !strcmp(now.hash, job->layout))
		return 0;
	return md_task_begin_again(t, "upgrade", MD_UPGRADED);
}

int md_task_advance(struct md_task *t, enum mp_job_state to, const char *step, const char *verdict,
		    const char *fmt, ...)
{
	char reason[MP_JOB_TEXT_MAX + 1];
	struct mp_job_step s = {step, verdict, reason, 0};
	va_list args;
	int ret;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	/* A note within a step leaves the state as it is: the step goes on, and ends later. */
	ret = to == t->job->state ? 0 : look_again(t);
	if (ret)
		return ret;
	s.when_s = begin_of_state(t);
	if (to != t->job->state)
		md_work_dir_flush(&t->dir);
	ret = mp_store_advance_job(t->worker->store, t->job, to, &s, t->err);
	return ret ? ret : 1;
}

int md_task_note(struct md_task *t, const char *text)
{
	char *detail;

	if (!strcmp(t->job->detail, text))
		return 0;
	detail = strdup(text);
	if (!detail)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	free(t->job->detail);
	t->job->detail = detail;
	return mp_store_note_job(t->worker->store, t->job, t->err);
}

int md_task_has_verdict(struct md_task *t, const char *step, const char *verdict)
{
	struct mp_decision *list;
	size_t nr;
	int found = 0,
	    ret = mp_store_list_history(t->worker->store, t->job->path, 0, &list, &nr, t->err);

	if (ret)
		return ret;
	for (size_t i = 0; i < nr; i++)
		found |= list[i].round == t->job->round && !strcmp(list[i].step, step) &&
			 (!verdict || !strcmp(list[i].verdict, verdict));
	mp_store_free_history(list, nr);
	return found;
}

int md_task_has_step(struct md_task *t, const char *step)
{
	return md_task_has_verdict(t, step, NULL);
}

int md_task_take(struct md_task *t, const char *from, const char *to, uint64_t most)
{
	struct md_work_path new = md_work_path(&t->dir, "taken.new");
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), out = -1;
	uint64_t taken = 0;
	struct stat st;
	ssize_t n = -1;

	if (in >= 0)
		errno = EIO;
	/* With a second name it may be a file that its user may not read. */
	if (in >= 0 && !fstat(in, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_size > 0 && (uint64_t)st.st_size <= most) {
		unlink(new.text);
		out = open(new.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	}
	/* Its user may make it longer meanwhile. */
	while (out >= 0 && taken <= most &&
	       (n = copy_file_range(in, NULL, out, NULL, 1 << 24, 0)) > 0)
		taken += (uint64_t)n;
	if (in >= 0)
		close(in);
	if (!n && fsync(out))
		n = -1;
	if (out >= 0 && (close(out) || (!n && rename(new.text, to))))
		n = -1;
	return n ? mp_err_set(t->err, errno, "%s: cannot be taken over: %s", from, strerror(errno))
		 : 0;
}

int md_task_note_variant(struct md_task *t, enum md_variant variant)
{
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(variant));
	struct md_file_state state;
	int ret = md_file_look(file.text, &state, t->err);

	if (!ret)
		ret = md_variants_note(&t->dir, variant, state.hash, t->err);
	/* The collector need not prove it again, to count its samples for the original. */
	if (!ret && variant != MD_COUNTING)
		ret = mp_store_put_output(
			t->worker->store,
			&(struct mp_output){.id = state.id, .original = state.original}, t->err);
	return ret;
}

/* The policy names a path, and not what its user may put a symbolic link to in the meantime. */
#define CHANGE (char *)"--report=none", (char *)"--no-symlinks"

/* To undo does not wait for an idle machine, and swaps are a matter of a moment. */
static int change_file(struct md_task *t, char **argv, size_t nr, bool must_run,
		       struct md_child_result *r)
{
	char backup[PATH_MAX + 16];
	struct md_child as = {.must_run = must_run, .priority = MD_CHILD_PROMPT};

	if (t->worker->backup_dir) {
		snprintf(backup, sizeof(backup), "--backup-dir=%s", t->worker->backup_dir);
		argv[nr++] = backup;
	}
	argv[nr] = NULL;
	return md_task_run_beside(t, argv, &as, r);
}

int md_task_replace(struct md_task *t, enum md_variant variant, struct md_child_result *r)
{
	static const char *const kinds[MD_NR_VARIANTS] = {
		[MD_COUNTING] = "--kind=edges,edges+threads",
		[MD_METERED_ORIGINAL] = "--kind=meter",
		[MD_METERED_NEW] = "--kind=meter",
	};
	struct md_work_path file = md_work_path(&t->dir, md_variant_name(variant));
	char *argv[10] = {t->worker->optimize, (char *)"adopt", CHANGE, t->job->path, file.text};
	size_t nr = 6;

	/* A version that stays in place is proved once more; versions in turns were proved when they were written. */
	if (kinds[variant] || t->job->state == MP_JOB_TRYING) {
		argv[nr++] = (char *)(kinds[variant] ? kinds[variant] : "--kind=layout");
		argv[nr++] = (char *)"--proved";
	} else if (md_policy_may_instrument(t->worker->policy, t->rule))
		argv[nr++] = (char *)"--kind=layout,audit";
	return change_file(t, argv, nr, false, r);
}

int md_task_restore(struct md_task *t, struct md_child_result *r)
{
	char *argv[8] = {t->worker->optimize, (char *)"restore", CHANGE, t->job->path};

	return change_file(t, argv, 5, true, r);
}

int md_task_put_back(struct md_task *t)
{
	struct md_child_result r;
	int ret = md_running_is(&t->dir) ? md_running_undo(t) : 0;

	if (ret || !strcmp(t->now.hash, t->job->file_hash))
		return ret;
	ret = md_task_restore(t, &r);
	if (!ret && (r.end != MD_CHILD_EXITED || r.status))
		ret = mp_err_set(t->err, EIO, "the original could not be put back: %s", r.reason);
	return ret;
}

const char *md_task_user(const struct md_task *t)
{
	if (t->rule && t->rule->user)
		return t->rule->user;
	/* Commands of the policy train and audit without root's rights. */
	return geteuid() ? NULL : "nobody";
}

int md_task_begin_again(struct md_task *t, const char *step, const char *reason)
{
	const struct mp_job_step s = {step, "changed", reason, begin_of_state(t)};
	int ret = md_running_end(t);

	if (ret)
		return ret;
	t->job->id = t->now.id;
	snprintf(t->job->file_hash, sizeof(t->job->file_hash), "%s", t->now.hash);
	md_work_dir_remove(&t->dir);
	ret = mp_store_renew_job(t->worker->store, t->job, &s, t->err);
	return ret ? ret : 1;
}

int md_task_restart(struct md_task *t, const char *step)
{
	char *argv[] = {(char *)"/usr/bin/systemctl", (char *)"try-restart", (char *)"--no-block",
			t->rule ? t->rule->unit : NULL, NULL};
	struct md_child as = {.limit_s = 120};
	struct md_child_result r;
	int ret;

	if (!t->rule || !t->rule->unit)
		return 0;
	ret = md_task_has_step(t, step);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = md_task_run(t, argv, &as, &r);
	if (ret)
		return ret;
	if (r.end == MD_CHILD_EXITED && !r.status)
		ret = md_task_advance(t, t->job->state, step, "done", "%s was restarted",
				      t->rule->unit);
	else
		ret = md_task_advance(t, t->job->state, step, "failed",
				      "%s could not be restarted: %s", t->rule->unit, r.reason);
	return ret < 0 ? ret : 0;
}
