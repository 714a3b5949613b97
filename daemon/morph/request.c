// SPDX-License-Identifier: Apache-2.0
/* request - the steps of one program in the foreground; see request.h. */
#include "daemon/morph/request.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/run_tool.h"
#include "daemon/morph/take_back.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/work_dir.h"
#include "daemon/worker/worker.h"
#include "libprof/base/defaults.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/progress.h"
#include "libprof/elf/backup_dir.h"

#define MAX_WORDS 32

void md_request_fini(struct md_request *r)
{
	if (r->has_job)
		mp_store_fini_job(&r->job);
	r->has_job = false;
}

/* ---- jobs --------------------------------------------------------------------------------------- */

static int advance(struct md_request *r, enum mp_job_state to, const char *step,
		   const char *verdict, const char *reason, struct mp_err *err)
{
	/* A change of the file behind that time is looked at: the state must not begin later. */
	int64_t when_s = r->changes_s ? r->changes_s : (int64_t)time(NULL);
	const struct mp_job_step taken = {step, verdict, reason, when_s};
	int ret = mp_store_advance_job(r->store, &r->job, to, &taken, err);

	snprintf(r->why, sizeof(r->why), "%s", reason ? reason : "");
	if (ret == -ESTALE)
		mp_err_set(err, ESTALE, "%s: another program of Morph works on it now", r->path);
	return ret;
}

/* The job of the path, in a new round, so that each step is there once. */
static int begin_round(struct md_request *r, struct mp_err *err)
{
	const struct mp_job_step step = {"request", "again", "somebody asked for it",
					 (int64_t)time(NULL)};
	int ret = mp_store_want_job(r->store, r->path, MP_JOB_BY_REQUEST, getuid(), true,
				    step.when_s, &r->job, err);

	r->has_job = !ret;
	if (ret || r->job.state == MP_JOB_WANTED)
		return ret;
	if (mp_job_state_in_place(r->job.state) && r->job.state != MP_JOB_UNDOING)
		return mp_err_set(
			err, EALREADY,
			"%s: an optimised version is in use; morph undo puts the original "
			"back",
			r->path);
	return mp_store_renew_job(r->store, &r->job, &step, err);
}

static int find_job(struct md_request *r, struct mp_err *err)
{
	int ret = r->store ? mp_store_find_job(r->store, r->path, &r->job, err) : -ENOENT;

	r->has_job = !ret;
	return ret;
}

/* ---- optimize ------------------------------------------------------------------------------------ */

static int make_directory(const char *path, struct mp_err *err)
{
	return mkdir(path, 0700) && errno != EEXIST
		       ? mp_err_set(err, errno, "%s: %s", path, strerror(errno))
		       : 0;
}

/* As an absolute path, since the job keeps it. NULL: with a message. */
static char *find_backup_dir(const struct md_request *r, struct mp_err *err)
{
	char *cwd, *dir = NULL;

	if (!r->backup_dir)
		return mp_backup_default_dir(err);
	cwd = r->backup_dir[0] == '/' ? strdup("") : getcwd(NULL, 0);
	if (!cwd || asprintf(&dir, "%s%s%s", cwd, *cwd ? "/" : "", r->backup_dir) < 0) {
		dir = NULL;
		mp_err_set(err, errno, "%s: %s", r->backup_dir, strerror(errno));
	}
	free(cwd);
	return dir;
}

int md_request_name_output(const struct md_request *r, const struct mp_id *id, char *buf,
			   size_t size, struct mp_err *err)
{
	char folder[MP_BACKUP_FOLDER_MAX], *dir;
	int ret = 0;

	dir = find_backup_dir(r, err);
	if (!dir)
		return -EIO;
	/* The parents, below a home directory that may be new. */
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(dir, 0755);
		*slash = '/';
	}
	ret = make_directory(dir, err);
	snprintf(buf, size, "%s/outputs", dir);
	if (!ret)
		ret = make_directory(buf, err);
	mp_backup_folder(id, folder);
	if (snprintf(buf, size, "%s/outputs/%.100s.%.16s", dir, strrchr(r->path, '/') + 1,
		     folder) >= (int)size)
		ret = mp_err_set(err, ENAMETOOLONG, "%s: the name is too long", r->path);
	free(dir);
	return ret;
}

/* The job waits; explain says for what. */
static void note_too_little(struct md_request *r)
{
	char *detail = strdup("there was too little profile of it when somebody asked");

	snprintf(r->why, sizeof(r->why),
		 "there is too little profile of it; `morphd run -- COMMAND' with a COMMAND that "
		 "uses it collects one");
	if (detail) {
		free(r->job.detail);
		r->job.detail = detail;
	}
	mp_store_note_job(r->store, &r->job, NULL);
}

/* morph-optimize's statuses; a refusal and a lack of samples are ends of the round. */
static int write_output(struct md_request *r, const char *output, struct mp_err *err)
{
	char db[MP_PATH_ROOM], out[MP_PATH_ROOM];
	char *argv[] = {"morph-optimize", "--json", db, "-o", out, (char *)r->path, NULL};
	const json_t *predicted;
	json_t *said = NULL;
	int status;

	snprintf(db, sizeof(db), "--db=%s", r->db);
	snprintf(out, sizeof(out), "%s", output);
	mp_progress_say("writing and verifying");
	status = md_run_tool(argv, &said, err);
	predicted = json_object_get(said, "predicted_taken_ratio");
	if (json_is_number(predicted))
		r->job.gain.predicted = json_number_value(predicted);
	json_decref(said);
	if (status < 0)
		return status;
	if (status == MP_EXIT_NO_PROFILE) {
		note_too_little(r);
	} else if (status == MP_EXIT_REFUSED) {
		advance(r, MP_JOB_REFUSED, "write", "refused",
			"morph-optimize refused it; its message says why", err);
	} else if (status) {
		advance(r, MP_JOB_FAILED, "write", "failed", "morph-optimize failed", err);
	}
	return status;
}

static int written(struct md_request *r, const char *output, struct mp_err *err)
{
	int ret = advance(r, MP_JOB_PROFILED, "profile", "done", "there are enough samples", err);

	free(r->job.output);
	r->job.output = strdup(output);
	if (!ret && !r->job.output)
		ret = mp_err_set(err, ENOMEM, "out of memory");
	if (!ret)
		ret = advance(r, MP_JOB_WRITTEN, "write", "done", "an optimised version is written",
			      err);
	if (!ret)
		ret = advance(r, MP_JOB_VERIFIED, "verify", "done",
			      "the version does the same as the original", err);
	return ret;
}

static void take_audit(struct mp_job *job, const json_t *said)
{
	const json_t *interval = json_object_get(said, "interval");

	job->gain.ratio = json_number_value(json_object_get(said, "speedup"));
	job->gain.lowest = json_number_value(json_array_get(interval, 0));
	job->gain.highest = json_number_value(json_array_get(interval, 1));
}

/* Writes the verdict of an audit, which ended with @status, into the job. Return: exit status, -errno. */
static int judge(struct md_request *r, int status, const char *verdict, const char *error,
		 struct mp_err *err)
{
	struct {
		enum mp_job_state to;
		const char *result, *why;
		int status;
	} end = {MP_JOB_NOT_FASTER, "not-faster", "an audit did not find it faster",
		 MP_EXIT_NOT_FASTER};
	int ret;

	if (status == MP_EXIT_DONE && !strcmp(verdict, "faster")) {
		end.to = MP_JOB_AUDITED;
		end.result = "faster";
		end.why = "an audit found it faster";
		end.status = MP_EXIT_DONE;
	} else if (status == MP_EXIT_FAILED) {
		end.to = MP_JOB_FAILED;
		end.result = "failed";
		end.why = error ? error : "morph-audit failed without a message";
		end.status = MP_EXIT_FAILED;
	} else if (!strcmp(verdict, "undecided")) {
		end.to = MP_JOB_UNDECIDED;
		end.result = "undecided";
		end.why = "the audit could not tell which version is faster";
		end.status = MP_EXIT_UNDECIDED;
	} else if (status == MP_EXIT_DIFFERS) {
		end.result = "differs";
		end.why = "the versions print different output";
	}
	ret = advance(r, end.to, "audit", end.result, end.why, err);
	return ret ? ret : end.status;
}

/* Return: exit status, -errno. */
static int audit(struct md_request *r, struct mp_err *err)
{
	char at[MP_PATH_ROOM], *filter = NULL, *argv[MAX_WORDS + 9] = {"morph-audit", "--json", at};
	const char *verdict = "undecided", *error;
	json_t *said = NULL;
	int status, nr = 3;

	if (r->nr_command > MAX_WORDS)
		return mp_err_set(err, E2BIG, "the command has too many words");
	if (r->filter && asprintf(&filter, "--filter=%s", r->filter) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (filter)
		argv[nr++] = filter;
	argv[nr++] = "--command";
	argv[nr++] = (char *)r->path;
	argv[nr++] = r->job.output;
	argv[nr++] = "--";
	snprintf(at, sizeof(at), "--at=%s", r->path);
	for (int i = 0; i < r->nr_command; i++)
		argv[nr++] = r->command[i];
	mp_progress_say("measuring both versions in turns");
	status = md_run_tool(argv, &said, err);
	free(filter);
	if (status < 0)
		return status;
	take_audit(&r->job, said);
	error = json_string_value(json_object_get(said, "error"));
	if (json_string_value(json_object_get(said, "verdict")))
		verdict = json_string_value(json_object_get(said, "verdict"));
	status = judge(r, status, verdict, error, err);
	json_decref(said);
	return status;
}

int md_request_optimize(struct md_request *r, struct mp_err *err)
{
	struct md_program file;
	char output[MP_PATH_ROOM];
	int ret = md_program_read(r->path, &file, err);

	if (ret)
		return ret;
	ret = begin_round(r, err);
	if (!ret)
		r->job.id = file.id;
	if (!ret)
		ret = md_request_name_output(r, &file.id, output, sizeof(output), err);
	md_program_fini(&file);
	if (!ret)
		ret = write_output(r, output, err);
	if (!ret)
		ret = written(r, output, err);
	if (!ret && r->command)
		ret = audit(r, err);
	if (!ret)
		ret = advance(r, MP_JOB_ADVISED, "advise", "done",
			      r->command ? "it was measured and is faster"
					 : "it was not measured, since no command was given",
			      err);
	return ret;
}

/* ---- a version that was made elsewhere --------------------------------------------------------- */

/* The file may have been upgraded, while the store still says that a version of it is in use. */
static int begin_round_of(struct md_request *r, struct mp_err *err)
{
	const struct mp_job_step step = {"upgrade", "done", "the file is another one now",
					 (int64_t)time(NULL)};
	struct md_program file;
	bool is_output;
	int ret = md_program_read(r->path, &file, err);

	if (ret)
		return ret;
	is_output = file.is_output;
	md_program_fini(&file);
	ret = begin_round(r, err);
	if (ret != -EALREADY || is_output)
		return ret;
	return mp_store_renew_job(r->store, &r->job, &step, err);
}

/* By their bytes the worker tells what lies at the path: the original, the version, or another file. */
static int note_bytes(struct md_request *r, const char *output, struct mp_err *err)
{
	char hash[sizeof(r->job.file_hash)];
	int ret = md_file_hash(r->path, hash);

	if (!ret)
		ret = md_file_hash(output, r->job.layout);
	if (ret)
		return mp_err_set(err, -ret, "%s: %s", r->path, strerror(-ret));
	/* After a first call that failed late, the version may lie there already. Its bytes are not the original's. */
	if (strcmp(hash, r->job.layout))
		memcpy(r->job.file_hash, hash, sizeof(hash));
	return 0;
}

int md_request_take(struct md_request *r, const struct mp_id *id, const char *output,
		    enum mp_job_state to, const char *why, struct mp_err *err)
{
	int ret = begin_round_of(r, err);

	if (ret)
		return ret;
	r->job.id = *id;
	free(r->job.output);
	r->job.output = strdup(output);
	if (!r->job.output)
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = note_bytes(r, output, err);
	if (ret)
		return ret;
	ret = advance(r, MP_JOB_WRITTEN, "write", MD_REQUEST_FLEET, why, err);
	if (ret || to == MP_JOB_WRITTEN)
		return ret;
	ret = advance(r, MP_JOB_VERIFIED, "verify", "done",
		      "it is proved to do the same as the original", err);
	return ret ? ret : advance(r, MP_JOB_ADVISED, "advise", MD_REQUEST_FLEET, why, err);
}

/* ---- the worker ---------------------------------------------------------------------------------- */

/* The exit status for a round that ended so. */
static int status_of(enum mp_job_state state)
{
	switch (state) {
	case MP_JOB_AUDITED:
	case MP_JOB_ADVISED:
	case MP_JOB_ADOPTED:
	case MP_JOB_KEPT: return MP_EXIT_DONE;
	case MP_JOB_WANTED: return MP_EXIT_NO_PROFILE;
	case MP_JOB_REFUSED: return MP_EXIT_REFUSED;
	case MP_JOB_NOT_FASTER: return MP_EXIT_NOT_FASTER;
	case MP_JOB_UNDECIDED: return MP_EXIT_UNDECIDED;
	default: return MP_EXIT_FAILED;
	}
}

int md_request_by_worker(struct md_request *r, struct mp_err *err)
{
	char db[MP_PATH_ROOM], backup[MP_PATH_ROOM];
	char *argv[8] = {"morph-worker", "--now", db};
	int n = 3, status;

	snprintf(db, sizeof(db), "--db=%s", r->db);
	snprintf(backup, sizeof(backup), "--backup-dir=%s", r->backup_dir ? r->backup_dir : "");
	if (r->backup_dir)
		argv[n++] = backup;
	argv[n++] = (char *)r->path;
	mp_progress_stop();
	status = md_run_tool(argv, NULL, err);
	if (status)
		return status;
	status = find_job(r, err);
	if (status)
		return status;
	snprintf(r->why, sizeof(r->why), "%.500s", r->job.detail);
	return status_of(r->job.state);
}

/* ---- adopt, undo --------------------------------------------------------------------------------- */

/* Runs morph-optimize @command on the path. Return: exit status, -errno. */
static int run_editor(struct md_request *r, const char *command, char *output, struct mp_err *err)
{
	char dir[MP_PATH_ROOM];
	char *argv[8] = {"morph-optimize", (char *)command, "--report=none"};
	int n = 3;

	if (r->backup_dir) {
		snprintf(dir, sizeof(dir), "--backup-dir=%s", r->backup_dir);
		argv[n++] = dir;
	}
	argv[n++] = (char *)r->path;
	if (output)
		argv[n++] = output;
	return md_run_tool(argv, NULL, err);
}

/* The version that morph optimize wrote. Return: true; @path gets it. */
static bool is_own_output(const struct md_request *r, char *path, size_t size)
{
	return !md_request_name_output(r, &r->job.id, path, size, NULL) &&
	       !strcmp(path, r->job.output);
}

/*
 * The path of the version. The store may be another user's: its path is believed only if it is the one that
 * morph optimize uses. A version of the worker is that of the worker's own directory, and its
 * evidence says that this very version was found faster.
 * Return: 0; an exit status, with a reason.
 */
static int find_version(struct md_request *r, char *output, size_t size, struct mp_err *err)
{
	char state_dir[PATH_MAX], now[33], made[33];
	struct md_work_dir dir;
	struct md_evidence e;

	if (is_own_output(r, output, size))
		return note_bytes(r, output, err);
	int ret = md_state_default_dir(state_dir, sizeof(state_dir), err);

	if (!ret)
		ret = md_work_dir_find(state_dir, r->path, &dir, err);
	if (ret && ret != -ENOENT)
		return ret;
	if (!ret)
		snprintf(output, size, "%s", md_work_path(&dir, "output").text);
	if (ret || !md_evidence_load(&dir, &e) || md_file_hash(r->path, now) ||
	    md_file_hash(output, made) || strcmp(e.original, now) != 0 ||
	    strcmp(e.output, made) != 0 || strcmp(e.verdict, "faster") != 0 || e.gain.lowest < 1) {
		snprintf(r->why, sizeof(r->why),
			 "there is no evidence that the version is faster than today's file; "
			 "morph optimize, with a command, measures it");
		return MP_EXIT_FAILED;
	}
	snprintf(r->job.layout, sizeof(r->job.layout), "%s", made);
	snprintf(r->job.file_hash, sizeof(r->job.file_hash), "%s", now);
	return 0;
}

/* Notes what the worker will compare the version with, as it does for a version that it adopts itself. */
static int begin_probation(struct md_request *r, struct mp_err *err)
{
	struct md_worker worker = {.store = r->store};
	struct md_task task = {.worker = &worker, .job = &r->job, .err = err};
	char state_dir[PATH_MAX];
	struct mp_err unknown;

	/* The directory names the program that has loaded a library. */
	if (md_state_default_dir(state_dir, sizeof(state_dir), &unknown) ||
	    md_work_dir_find(state_dir, r->path, &task.dir, &unknown))
		task.dir.path[0] = '\0';
	return md_probation_begin(&task);
}

int md_request_adopt(struct md_request *r, struct mp_err *err)
{
	char output[PATH_MAX];
	int ret = find_job(r, err);

	if (ret == -ENOENT || (!ret && (!r->job.output[0] || (r->job.state != MP_JOB_ADVISED &&
							      r->job.state != MP_JOB_AUDITED)))) {
		snprintf(r->why, sizeof(r->why),
			 "there is no faster version of it yet; morph optimize writes one");
		return MP_EXIT_FAILED;
	}
	if (ret)
		return ret;
	ret = find_version(r, output, sizeof(output), err);
	if (ret)
		return ret;
	/* All samples until now are of the original. */
	ret = begin_probation(r, err);
	if (ret)
		return ret;
	r->changes_s = r->job.adopted_s;
	mp_progress_say("verifying and replacing");
	ret = run_editor(r, "adopt", output, err);
	if (ret) {
		snprintf(r->why, sizeof(r->why), "it was not replaced");
		return ret;
	}
	return advance(r, MP_JOB_ADOPTED, "adopt", "done", "somebody asked for it", err);
}

bool md_request_was_restored(const struct mp_job *job)
{
	char hash[33];

	return mp_job_state_in_place(job->state) && job->file_hash[0] &&
	       !md_file_hash(job->path, hash) && !strcmp(hash, job->file_hash);
}

/* The worker, which may run, has seen what was asked, and has done it. */
static bool was_undone(struct md_request *r, struct mp_err *err)
{
	md_request_fini(r);
	return !find_job(r, err) && r->job.state == MP_JOB_UNDONE;
}

int md_request_undo(struct md_request *r, struct mp_err *err)
{
	int ret = find_job(r, err);
	bool known = !ret && mp_job_state_in_place(r->job.state);
	bool restored = known && md_request_was_restored(&r->job);

	if (ret && ret != -ENOENT)
		return ret;
	/* If this process is killed behind this, the worker puts the original back. */
	if (known && r->job.state != MP_JOB_UNDOING &&
	    (ret = advance(r, MP_JOB_UNDOING, "undo", "asked", "somebody asked for it", err)))
		return ret;
	r->changes_s = (int64_t)time(NULL);
	mp_progress_say("restoring");
	ret = restored ? 0 : run_editor(r, "restore", NULL, err);
	if (ret) {
		snprintf(r->why, sizeof(r->why), "the original was not put back");
		return ret;
	}
	ret = md_take_back(r->path, &(size_t){0}, err);
	if (ret) {
		snprintf(r->why, sizeof(r->why), "a running process keeps the version");
		return ret;
	}
	ret = known ? advance(r, MP_JOB_UNDONE, "restore", "done", "the original is back", err) : 0;
	return ret == -ESTALE && was_undone(r, err) ? 0 : ret;
}
