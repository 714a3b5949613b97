// SPDX-License-Identifier: Apache-2.0
/*
 * morph_request - the commands "optimize", "adopt" and "undo": what a user asks for one program. The
 * work is in request.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/machine/backups.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/request.h"
#include "daemon/morph/wording.h"
#include "daemon/policy/deny.h"
#include "daemon/worker/work_dir.h"
#include "libprof/base/text.h"
#include "libprof/cli/progress.h"

#define MP_OPTIONS struct asked

enum action {
	OPTIMIZE,
	ADOPT,
	UNDO
};

static const char *const names[] = {"optimize", "adopt", "undo"};

struct asked {
	struct md_cli *cli;
	enum action action;
	const char *name, *backup_dir, *filter;
	bool all;
	char **command;
	int nr_command;
	struct mp_store *store;
	struct md_machine machine;
	json_t *rows; /* NULL: text */
};

static const struct mp_option undo_options[] = {
	MP_FLAG("all", all, "Every program that Morph has replaced"), MP_OPTIONS_END};

static const struct mp_option optimize_options[] = {
	MP_VALUE(TEXT, "filter", 0, filter, "CMD",
		 "A shell command that removes from COMMAND's output what varies from run to run, before the "
		 "audit compares it"),
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct asked *a = options;

	if (a->action == OPTIMIZE && a->name && state->quoted && state->next > state->quoted) {
		a->command = state->argv + state->next - 1;
		a->nr_command = state->argc - state->next + 1;
		state->next = state->argc;
		return;
	}
	if (a->name)
		argp_error(state, "%s: too many arguments", arg);
	a->name = arg;
}

static void check(void *options, struct argp_state *state)
{
	const struct asked *a = options;

	if (!a->name && !a->all)
		argp_error(state, "no program given");
	if (a->name && a->all)
		argp_error(state, "--all or a program, not both");
	if (a->filter && !a->command)
		argp_error(state, "--filter: which command? Give it behind --");
}

static const struct mp_usage optimize_usage = {
	.options = optimize_options,
	.arguments = "PROGRAM [-- COMMAND...]",
	.word = take_word,
	.check = check,
	.doc = "Write a faster version of PROGRAM from the samples that there are, verify it, and measure "
	       "it with COMMAND, which uses PROGRAM. Nothing is replaced; `morph adopt' does that.",
	.shared = &md_cli_common_argp};
static const struct mp_usage adopt_usage = {
	.arguments = "PROGRAM",
	.word = take_word,
	.check = check,
	.doc = "Put the version that `morph optimize', or Morph by itself, has written in the place of "
	       "PROGRAM. The original is kept.",
	.shared = &md_cli_common_argp};
static const struct mp_usage undo_usage = {.options = undo_options,
					   .arguments = "[PROGRAM]",
					   .word = take_word,
					   .check = check,
					   .doc = "Put the original of PROGRAM back.",
					   .shared = &md_cli_common_argp};

/* ---- results ------------------------------------------------------------------------------------ */

static void put_row(struct asked *a, const struct md_request *r, int status)
{
	static const char *const done[] = {"optimised", "adopted", "undone"};
	char gain[MD_WORDING_MAX];

	if (a->rows) {
		json_array_append_new(
			a->rows,
			json_pack("{s:o, s:i, s:o, s:o, s:o, s:o}", "path", mp_json_string(r->path),
				  "status", status, "state",
				  r->has_job ? json_string(mp_job_state_name(r->job.state))
					     : json_null(),
				  "reason", mp_json_string(r->why), "measured",
				  r->has_job ? md_morph_gain_json(&r->job.gain) : json_null(),
				  "output",
				  r->has_job && r->job.output && r->job.output[0]
					  ? mp_json_string(r->job.output)
					  : json_null()));
		return;
	}
	if (status)
		return;
	mp_text_put(stdout, r->path);
	printf(": %s", done[a->action]);
	if (a->action == OPTIMIZE && r->job.gain.ratio > 0)
		printf(", %s", md_wording_gain(&r->job.gain, gain));
	else if (a->action != UNDO && r->job.gain.ratio <= 0)
		fputs(", not measured", stdout);
	if (a->action == OPTIMIZE) {
		fputs(".\n`morph adopt ", stdout);
		mp_text_put(stdout, r->path);
		fputs("' puts it in place", stdout);
	}
	puts(".");
}

/* Does the policy say how this program is trained and audited? */
static bool has_rule(const char *path)
{
	struct md_policy policy = {0};
	char dir[PATH_MAX];
	bool has = !md_policy_default_dir(dir, sizeof(dir), NULL) &&
		   !md_policy_read(dir, &policy, NULL) && md_policy_rule(&policy, path);

	md_policy_fini(&policy);
	return has;
}

/* The worker must not work on the program at the same time: take its lock. */
static int optimize(struct md_request *r, struct mp_err *err)
{
	char dir[PATH_MAX];
	int lock, status;

	if (!r->command && has_rule(r->path))
		return md_request_by_worker(r, err);
	status = md_state_default_dir(dir, sizeof(dir), err);
	if (status)
		return status;
	lock = md_state_lock(dir, err);
	if (lock < 0)
		return lock;
	status = md_request_optimize(r, err);
	close(lock);
	return status;
}

static int do_one(struct asked *a, const char *path)
{
	struct md_request r = {.store = a->store,
			       .db = a->cli->path,
			       .path = path,
			       .backup_dir = a->backup_dir,
			       .command = a->command,
			       .nr_command = a->nr_command,
			       .filter = a->filter};
	struct mp_err err = {0};
	char gain[MD_WORDING_MAX];
	int status;

	mp_progress_start("morph", true);
	status = a->action == OPTIMIZE ? optimize(&r, &err)
		 : a->action == ADOPT  ? md_request_adopt(&r, &err)
				       : md_request_undo(&r, &err);
	mp_progress_stop();
	if (status < 0) {
		md_cli_fail("%s", err.msg);
		snprintf(r.why, sizeof(r.why), "%.500s", err.msg);
		status = MP_EXIT_FAILED;
	} else if (status && a->action == OPTIMIZE && r.job.gain.ratio > 0) {
		md_cli_fail("%s: %s; measured: %s", path, r.why,
			    md_wording_gain(&r.job.gain, gain));
	} else if (status) {
		md_cli_fail("%s: %s", path, r.why);
	}
	put_row(a, &r, status);
	md_request_fini(&r);
	return status;
}

/* ---- running ------------------------------------------------------------------------------------ */

/*
 * Puts the original back if a version lies at @place. If that cannot be told, it says so: the user may want the original later.
 * Return: exit status.
 */
static int undo_place(struct asked *a, const struct md_backup_place *place)
{
	switch (place->holds) {
	case MD_BACKUP_OUTPUT: return do_one(a, place->path);
	case MD_BACKUP_UNREADABLE:
		return md_cli_fail("%s: cannot be read, and may be a version of Morph, or tell of "
				   "one; the backups stay",
				   place->path);
	case MD_BACKUP_MISSING:
		md_cli_note("%s: is not there; if it was moved, or is not mounted, it may be a "
			    "version of Morph; its original stays among the backups",
			    place->path);
		return 0;
	default: return 0;
	}
}

static int undo_all(struct asked *a)
{
	struct mp_err err = {0};
	struct md_backup_place *places = NULL;
	size_t nr = 0;
	int status = 0, one;

	if (md_backups_list(a->backup_dir, &places, &nr, &err))
		return md_cli_fail("%s", err.msg);
	for (size_t i = 0; i < a->machine.nr_jobs; i++)
		if (md_request_was_restored(&a->machine.jobs[i])) {
			one = do_one(a, a->machine.jobs[i].path);
			status = status ? status : one;
		}
	for (size_t i = 0; i < nr; i++) {
		one = undo_place(a, &places[i]);
		status = status ? status : one;
	}
	if (!nr && !a->rows)
		puts("No program is replaced.");
	md_backups_free_places(places, nr);
	return status;
}

/* Is there something to undo: an output at the path, or the job of one? */
static bool may_be_undone(struct asked *a, const struct md_program *program)
{
	const struct md_machine_program *entry = md_morph_entry(&a->machine, program);

	return program->is_output ||
	       (entry && entry->job && mp_job_state_in_place(entry->job->state));
}

/* A rename replaces the file, so the directory decides. */
static bool may_replace(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.*s", slash > path ? (int)(slash - path) : 1, path);
	return !access(dir, W_OK) || errno != EACCES;
}

static int do_named(struct asked *a)
{
	const struct md_policy none_said = {.dir = ""};
	struct md_program program;
	char why[256];
	int r = md_morph_find(&a->machine, a->name, &program);

	if (r)
		return r;
	if (program.gone) {
		r = md_cli_fail("%s: is not there any more", program.path);
	} else if (a->action != UNDO && md_deny(&none_said, program.path, why, sizeof(why))) {
		md_cli_fail("%s: %s", program.path, why);
		r = MP_EXIT_REFUSED;
	} else if (a->action == OPTIMIZE && program.is_output) {
		r = md_cli_fail("%s: an optimised version is in use; morph undo puts the "
				"original back",
				program.path);
	} else if (a->action == UNDO && !may_be_undone(a, &program)) {
		md_cli_fail("%s: Morph has not replaced this file", program.path);
		r = MP_EXIT_REFUSED;
	} else if (a->action != OPTIMIZE && !may_replace(program.path)) {
		r = md_cli_fail("%s: you may not replace it; `sudo morph %s %s' does", program.path,
				names[a->action], program.path);
	} else {
		r = do_one(a, program.path);
	}
	md_program_fini(&program);
	return r;
}

/* Undoing needs no database. */
static int open_store(struct asked *a)
{
	struct mp_err err = {0};
	struct mp_store *read = NULL;
	int r;

	if (a->action == UNDO) {
		if (a->cli->db)
			snprintf(a->cli->path, sizeof(a->cli->path), "%s", a->cli->db);
		else if (mp_store_default_path(a->cli->path, sizeof(a->cli->path), false, NULL))
			return 0;
		/* Opening for writing makes a missing database. A mere question must not. */
		if (mp_store_open(a->cli->path, MP_STORE_READ, &read, NULL))
			return 0;
		mp_store_close(read);
		if (mp_store_open(a->cli->path, MP_STORE_WRITE, &a->store, &err))
			return md_cli_fail("%s", err.msg);
		r = md_machine_load(a->store, 0, &a->machine, &err);
		return r ? md_cli_fail("%s", err.msg) : 0;
	}
	r = md_cli_open(a->cli, MP_STORE_READ, &read);
	if (r)
		return r == MP_EXIT_NO_PROFILE ? md_morph_nothing_collected() : r;
	mp_store_close(read);
	if (access(a->cli->path, W_OK) && errno == EACCES)
		return md_cli_fail("%s: you may not write to it; `sudo morph %s %s' may",
				   a->cli->path, names[a->action], a->name ? a->name : "--all");
	if (mp_store_open(a->cli->path, MP_STORE_WRITE, &a->store, &err) ||
	    md_machine_load(a->store, 0, &a->machine, &err))
		return md_cli_fail("%s", err.msg);
	return 0;
}

static int run(struct asked *a, const struct mp_usage *usage, int argc, char **argv)
{
	json_t *root;
	int r;

	md_cli_parse(usage, argc, argv, a, a->cli);
	a->backup_dir = md_originals_backup_dir();
	r = open_store(a);
	if (!r && a->cli->json)
		a->rows = json_array();
	if (!r)
		r = a->all ? undo_all(a) : do_named(a);
	if (a->rows) {
		root = md_cli_json_new("request");
		json_object_set_new(root, "action", json_string(names[a->action]));
		json_object_set_new(root, "programs", a->rows);
		if (md_cli_json_print(root))
			r = MP_EXIT_FAILED;
	} else {
		r = md_cli_finish(r);
	}
	md_machine_fini(&a->machine);
	if (a->store)
		mp_store_close(a->store);
	return r;
}

int md_morph_optimize(struct md_cli *cli, int argc, char **argv)
{
	return run(&(struct asked){.cli = cli, .action = OPTIMIZE}, &optimize_usage, argc, argv);
}

int md_morph_adopt(struct md_cli *cli, int argc, char **argv)
{
	return run(&(struct asked){.cli = cli, .action = ADOPT}, &adopt_usage, argc, argv);
}

int md_morph_undo_all(struct md_cli *cli, json_t *rows)
{
	struct asked a = {.cli = cli,
			  .action = UNDO,
			  .all = true,
			  .backup_dir = md_originals_backup_dir(),
			  .rows = rows};
	int r = open_store(&a);

	if (!r)
		r = undo_all(&a);
	md_machine_fini(&a.machine);
	if (a.store)
		mp_store_close(a.store);
	return r;
}

int md_morph_undo(struct md_cli *cli, int argc, char **argv)
{
	return run(&(struct asked){.cli = cli, .action = UNDO}, &undo_usage, argc, argv);
}
