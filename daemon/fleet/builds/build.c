// SPDX-License-Identifier: Apache-2.0
/* build - see build.h. */
#include "daemon/fleet/builds/build.h"

#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fleet/builds/build_options.h"
#include "daemon/worker/child.h"
#include "libprof/base/child.h"
#include "libprof/base/defaults.h"
#include "libprof/base/remove_tree.h"
#include "libprof/cli/exit_status.h"
#include "libprof/elf/elf.h"
#include "libprof/note/map.h"

/* Longer than any build that is known; a builder that hangs gives its job back. */
#define LIMIT_S (6 * 3600)

/* One build, with its directory. */
struct work {
	struct md_build *build;
	struct md_build_job *job;
	struct md_build_options options;
	char dir[PATH_MAX];
	char *original;
	char profile[MP_PATH_ROOM], output[MP_PATH_ROOM], plan[MP_PATH_ROOM], report[MP_PATH_ROOM];
	char detail[1000]; /* why it failed, or what was made */
	bool lost;
	bool lacks; /* there is no original here */
};

/* ---- the original -------------------------------------------------------------------------- */

/* An output of Morph may have its original's identity, and its note says what it is. */
static bool is_original(const char *path, const struct mp_id *id)
{
	struct mp_map *map = NULL;
	struct mp_elf *elf;
	bool is;

	if (mp_elf_open(path, MP_ELF_ID, &elf, NULL))
		return false;
	is = mp_id_equal(&elf->id, id) && mp_map_read(elf, &map, NULL);
	mp_map_free(map);
	mp_elf_close(elf);
	return is;
}

/* @path, if it is the module's file. */
static char *take_if(const char *path, const struct mp_id *id)
{
	return is_original(path, id) ? strdup(path) : NULL;
}

/* DIR/.build-id/ab/cdef..., as debuggers and backups have it. */
static char *find_by_name(const char *place, const struct mp_id *id)
{
	char hex[2 * MP_BUILD_ID_MAX + 1], *path, *found;

	if (id->build_id_len < 2)
		return NULL;
	mp_id_format_build_id(id, hex);
	if (asprintf(&path, "%s/.build-id/%.2s/%s", place, hex, hex + 2) < 0)
		return NULL;
	found = take_if(path, id);
	free(path);
	return found;
}

/* All regular files below the directory. Symbolic links inside are not followed. */
static char *find_below(const char *place, const struct mp_id *id)
{
	char *root = strdup(place), *found = NULL;
	FTS *tree = root ? fts_open((char *[]){root, NULL},
				    FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL)
			 : NULL;
	FTSENT *entry;

	while (tree && !found && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_F)
			found = take_if(entry->fts_path, id);
	if (tree)
		fts_close(tree);
	free(root);
	return found;
}

/* Searches the places in their order. Return: 0; -ENOENT, with a message. Ownership: free(*@path). */
static int search(const struct mp_id *id, const struct md_places *places, char **path,
		  struct mp_err *err)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];

	*path = NULL;
	for (size_t i = 0; i < places->nr && !*path; i++) {
		*path = find_by_name(places->list[i], id);
		if (!*path)
			*path = find_below(places->list[i], id);
	}
	if (*path)
		return 0;
	mp_id_format_build_id(id, hex);
	return mp_err_set(err, ENOENT, "no original with the build-id %s and this code is here",
			  hex);
}

/* ---- the directory ------------------------------------------------------------------------- */

static int make_dir(struct work *w, struct mp_err *err)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(w->dir, sizeof(w->dir), "%s/morph-build.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(w->dir))
		return mp_err_set(err, errno, "%s: %s", w->dir, strerror(errno));
	snprintf(w->profile, sizeof(w->profile), "%s/profile.db", w->dir);
	snprintf(w->output, sizeof(w->output), "%s/output", w->dir);
	snprintf(w->plan, sizeof(w->plan), "%s/plan", w->dir);
	snprintf(w->report, sizeof(w->report), "%s/report", w->dir);
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

/* Runs a program of Morph. Return: its exit status; -1: it did not end by itself; -errno. */
static int run_tool(struct work *w, const char *name, char **argv, struct mp_err *err)
{
	char program[PATH_MAX];
	struct md_child child = {.argv = argv,
				 .out = w->report,
				 .limit_s = LIMIT_S,
				 .look = has_lost_job,
				 .look_arg = w};
	struct md_child_result result;
	int r = mp_child_find(name, program, err);

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
	return r == MP_EXIT_NO_PROFILE ? -ENODATA : r ? -EIO : 0;
}

static int optimize(struct work *w, struct mp_err *err)
{
	char db[MP_PATH_ROOM + 8], plan[MP_PATH_ROOM + 16],
		*argv[MD_BUILD_WORDS_MAX + 8] = {NULL, "--json", plan};
	size_t nr = 3;

	snprintf(db, sizeof(db), "--db=%s", w->profile);
	snprintf(plan, sizeof(plan), "--save-plan=%s", w->plan);
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

static void describe(struct work *w, size_t plan_size)
{
	json_t *report = json_load_file(w->report, 0, NULL);
	double predicted = json_number_value(json_object_get(report, "predicted_taken_ratio"));

	if (predicted > 0 && predicted < 1e6 && !w->options.no_profile)
		snprintf(w->detail, sizeof(w->detail),
			 "taken branches are predicted to change by %+.1f %%, %zu bytes of plan",
			 100 * (predicted - 1), plan_size);
	else
		snprintf(w->detail, sizeof(w->detail), "%zu bytes of plan", plan_size);
	json_decref(report);
}

/* Return: 0; -ESTALE; -EINVAL: this build cannot be stored; other: the server did not answer. */
static int store(struct work *w, struct mp_err *err)
{
	struct md_whole_file output = {0}, plan = {0};
	struct md_build_result result = {.output = &output, .plan = &plan, .detail = w->detail};
	int r = md_whole_file_open(w->output, &output, err);

	if (!r)
		r = md_whole_file_open(w->plan, &plan, err);
	if (!r)
		r = read_id(w->output, &result.id, err);
	if (r) {
		r = -EINVAL;
	} else {
		describe(w, plan.size);
		r = md_build_job_finish(&w->build->builder, w->job, &result, err);
	}
	md_whole_file_close(&plan);
	md_whole_file_close(&output);
	return r;
}

/* ---- one job ------------------------------------------------------------------------------- */

/* Return: 0; -ESTALE; -EINVAL: none was found. */
static int find_original(struct work *w, struct mp_err *err)
{
	int r = search(&w->job->id, w->build->originals, &w->original, err);

	w->lost |= md_child_is_stopped();
	if (has_lost_job(w))
		return -ESTALE;
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
			md_build_job_fail(&build->builder, job, "again", "the builder was stopped",
					  &why);
		return 0;
	}
	build->say(job, why.msg);
	if (r != -EINVAL)
		return mp_err_set(err, -r, "%s", why.msg);
	r = md_build_job_fail(&build->builder, job, w.lacks ? "lacking" : "failed", why.msg, err);
	if (r == -ESTALE) {
		*end = MD_BUILD_LOST;
		r = 0;
	}
	return r;
}
