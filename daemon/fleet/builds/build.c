// SPDX-License-Identifier: Apache-2.0
/* build - see build.h. */
#include "daemon/fleet/builds/build.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/builds/build_options.h"
#include "daemon/fleet/builds/delta.h"
#include "daemon/worker/child.h"
#include "libprof/base/remove_tree.h"
#include "libprof/elf/elf.h"

/* Longer than any build that is known; a builder that hangs gives its job back. */
#define LIMIT_S (6 * 3600)

/* One build, with its directory. */
struct work {
	struct md_build *build;
	struct md_build_job *job;
	struct md_build_options options;
	char dir[4096];
	char *original;
	char profile[4200], output[4200], report[4200], messages[4200];
	char detail[1000]; /* why it failed, or what was made */
	bool lost;
	bool later; /* a server of packages did not answer */
	bool lacks; /* there is no original here */
};

/* ---- the directory ------------------------------------------------------------------------- */

static int make_dir(struct work *w, struct mp_err *err)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(w->dir, sizeof(w->dir), "%s/morph-build.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(w->dir))
		return mp_err_set(err, errno, "%s: %s", w->dir, strerror(errno));
	snprintf(w->profile, sizeof(w->profile), "%s/profile.db", w->dir);
	snprintf(w->output, sizeof(w->output), "%s/output", w->dir);
	snprintf(w->report, sizeof(w->report), "%s/report", w->dir);
	snprintf(w->messages, sizeof(w->messages), "%s/messages", w->dir);
	return 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Asked every few seconds while a program runs. Return: true: it must end. */
static bool has_lost_job(void *arg)
{
	struct work *w = arg;

	w->lost |= !md_build_job_renew(&w->build->builder, w->job);
	return w->lost;
}

/* The same for work that does not see by itself that this process must stop. */
static bool is_unwanted(void *arg)
{
	struct work *w = arg;

	w->lost |= md_child_is_stopped();
	return w->lost || has_lost_job(arg);
}

/* Runs a program of Morph. Return: its exit status; -1: it did not end by itself; -errno. */
static int run_tool(struct work *w, const char *name, char **argv, struct mp_err *err)
{
	char program[PATH_MAX];
	struct md_child child = {.argv = argv,
				 .out = w->report,
				 .messages = w->messages,
				 .limit_s = LIMIT_S,
				 .look = has_lost_job,
				 .look_arg = w};
	struct md_child_result result;
	int r = md_child_find(name, program, err);

	if (r)
		return r;
	argv[0] = program;
	r = md_child_run(&child, &result, err);
	if (r)
		return r;
	if (result.end != MD_CHILD_EXITED) {
		w->lost |= result.end == MD_CHILD_STOPPED;
		mp_err_set(err, EIO, "%s %s", name,
			   result.end == MD_CHILD_LATE ? "took too long" : "was ended by a signal");
		return -EIO;
	}
	if (result.status)
		mp_err_set(err, EIO, "%s",
			   result.reason[0] ? result.reason : "it failed without a message");
	return result.status;
}

/* Return: 0, -ENODATA: the fleet has no profile, -EIO. */
static int pull(struct work *w, struct mp_err *err)
{
	char *argv[] = {NULL, "pull", "-o", w->profile, w->original, NULL};
	int r;

	/* Not an argument, which everybody could see. */
	setenv("MORPH_FLEET", w->build->database, 1);
	r = run_tool(w, "morph-fleet", argv, err);
	return r == 3 ? -ENODATA : r ? -EIO : 0;
}

static int optimize(struct work *w, struct mp_err *err)
{
	char db[4300], *argv[MD_BUILD_WORDS_MAX + 8] = {NULL, "--json"};
	size_t nr = 2;

	snprintf(db, sizeof(db), "--db=%s", w->profile);
	if (!w->options.no_profile)
		argv[nr++] = db;
	for (size_t i = 0; i < w->options.nr; i++)
		argv[nr++] = w->options.words[i];
	argv[nr++] = "-o";
	argv[nr++] = w->output;
	argv[nr] = w->original;
	return run_tool(w, "morph-optimize", argv, err) ? -EIO : 0;
}

/* ---- the result ---------------------------------------------------------------------------- */

static int read_id(const char *path, struct mp_id *id, struct mp_err *err)
{
	struct mp_elf *elf;
	int r = mp_elf_open(path, MP_ELF_ID, &elf, err);

	if (r)
		return r;
	*id = elf->id;
	mp_elf_close(elf);
	return 0;
}

static void describe(struct work *w, size_t delta_size)
{
	json_t *report = json_load_file(w->report, 0, NULL);
	double predicted = json_number_value(json_object_get(report, "predicted_taken_ratio"));

	if (predicted > 0 && predicted < 1e6 && !w->options.no_profile)
		snprintf(w->detail, sizeof(w->detail),
			 "taken branches are predicted to change by %+.1f %%, %zu bytes of delta",
			 100 * (predicted - 1), delta_size);
	else
		snprintf(w->detail, sizeof(w->detail), "%zu bytes of delta", delta_size);
	json_decref(report);
}

/* Return: 0; -ESTALE; -EINVAL: this build cannot be stored; other: the server did not answer. */
static int store(struct work *w, struct mp_err *err)
{
	struct md_whole_file original = {0}, output = {0};
	struct md_build_result result = {.original = &original, .output = &output};
	uint8_t *delta = NULL;
	size_t size = 0;
	int r = md_whole_file_open(w->original, &original, err);

	if (!r)
		r = md_whole_file_open(w->output, &output, err);
	if (!r)
		r = read_id(w->output, &result.id, err);
	if (!r && output.size > md_delta_output_max(original.size))
		r = mp_err_set(err, EFBIG, "the output is %zu bytes: no host takes it",
			       output.size);
	if (!r)
		r = md_delta_make(original.bytes, original.size, output.bytes, output.size, &delta,
				  &size, err);
	if (r) {
		r = -EINVAL;
	} else {
		describe(w, size);
		result.delta = delta;
		result.delta_size = size;
		result.detail = w->detail;
		r = md_build_job_finish(&w->build->builder, w->job, &result, err);
	}
	free(delta);
	md_whole_file_close(&output);
	md_whole_file_close(&original);
	return r;
}

/* ---- one job ------------------------------------------------------------------------------- */

static void say(void *arg, const char *text)
{
	const struct work *w = arg;

	w->build->say(w->job, text);
}

/* Return: 0; -ESTALE; -EINVAL: none was found. */
static int find_original(struct work *w, struct mp_err *err)
{
	char name[MD_NAME_SIZE] = "";
	const struct md_original_search search = {.places = &w->build->originals,
						  .name = name,
						  .dir = w->dir,
						  .look = {is_unwanted, w},
						  .say = say,
						  .say_arg = w};
	int r;

	if (w->build->originals.packages.nr)
		md_build_job_name(&w->build->builder, w->job, name);
	r = md_fleet_original_find(&w->job->id, &search, &w->original, err);

	if (is_unwanted(w))
		return -ESTALE;
	w->later = r == -EAGAIN;
	w->lacks = r == -ENOENT;
	return r ? -EINVAL : 0;
}

/* Return: 0: stored; -ESTALE; -EINVAL: failed for a reason of its own; other: the server is gone. */
static int make(struct work *w, struct mp_err *err)
{
	int r = md_build_options_parse(w->job->options, &w->options, err);

	if (r)
		return -EINVAL;
	r = find_original(w, err);
	if (r)
		return r;
	w->build->say(w->job, w->original);
	r = w->options.no_profile ? 0 : pull(w, err);
	if (!r)
		r = optimize(w, err);
	if (r)
		return w->lost ? -ESTALE : -EINVAL;
	return store(w, err);
}

int md_build_run(struct md_build *build, struct md_build_job *job, enum md_build_end *end,
		 struct mp_err *err)
{
	struct work w = {.build = build, .job = job};
	struct mp_err why = {""};
	int r = make_dir(&w, err);

	*end = MD_BUILD_FAILED;
	if (r)
		return r;
	r = make(&w, &why);
	mp_remove_tree(w.dir, 8);
	free(w.original);
	if (!r) {
		*end = MD_BUILD_STORED;
		build->say(job, w.detail);
		return 0;
	}
	if (r == -ESTALE) {
		*end = MD_BUILD_LOST;
		build->say(job, "the job is not this builder's any more, or it must stop");
		/* If it stops, another builder may begin at once. */
		if (md_child_is_stopped())
			md_build_job_fail(&build->builder, job, true, "the builder was stopped",
					  &why);
		return 0;
	}
	build->say(job, why.msg);
	if (r != -EINVAL)
		return mp_err_set(err, -r, "%s", why.msg);
	if (w.later)
		*end = MD_BUILD_LATER;
	r = w.lacks ? md_build_job_lack(&build->builder, job, why.msg, err)
		    : md_build_job_fail(&build->builder, job, w.later, why.msg, err);
	if (r == -ESTALE) {
		*end = MD_BUILD_LOST;
		r = 0;
	}
	return r;
}
