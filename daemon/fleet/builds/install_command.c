// SPDX-License-Identifier: Apache-2.0
/* install_command - the command "install": options, which files are meant, reports; see install.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/builds/install.h"
#include "daemon/fleet/command.h"
#include "daemon/cli/cli.h"
#include "daemon/worker/child.h"
#include "daemon/worker/work_dir.h"
#include "libprof/base/grow.h"
#include "libprof/store/jobs/store_jobs.h"

#define MP_OPTIONS struct options

#define FILES_MAX 256
#define ASK_MAX	  1000

struct options {
	struct md_fleet_access access;
	const char *db, *policy_dir, *backup_dir, *state_dir, *output;
	bool all, dry_run, json;
};

static const struct mp_option option_table[] = {
	MP_FLAG("all", all, "All files that the store knows and a rule of the policy names"),
	MP_FLAG("dry-run", dry_run, "Fetch and prove the builds, but change nothing"),
	MP_VALUE(TEXT, "output", 'o', output, "FILE",
		 "Write the proved build to FILE, and change nothing else"),
	MP_VALUE(TEXT, "db", 0, db, "FILE", "The store (default: see FILES in the man page)"),
	MP_VALUE(TEXT, "policy", 0, policy_dir, "DIR",
		 "The policy's directory (default: /etc/morph)"),
	MP_VALUE(TEXT, "backup-dir", 0, backup_dir, "DIR",
		 "Where originals are kept, as in morph-optimize"),
	MP_VALUE(TEXT, "state-dir", 0, state_dir, "DIR",
		 "Where morph-worker's work in progress lies"),
	MD_JSON,
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (o->all == (o->access.words.nr > 0))
		argp_error(state, o->all ? "--all or files, not both" : "no file given, nor --all");
	if (o->output && o->access.words.nr != 1)
		argp_error(state, "--output goes with one file");
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "FILE|BUILD-ID...",
	.words = MP_AT(access.words),
	.most = FILES_MAX,
	.check = check,
	.doc = "Put the fleet's builds of files in their place. A build is a plan: this host's own morph-optimize makes "
	       "the output from this host's own original, and verifies it. `morph undo' puts the original back.\v"
	       "If a rule of the policy says how to audit a file, morph-worker audits the build before it puts it "
	       "in place. Exit status: 0 done, or the fleet wants nothing of these files; 1 failed; 2 usage; 3 the "
	       "store knows no such build-id; 4 a build was refused; 75 the server is gone."};

/* ---- which files ---------------------------------------------------------------------------- */

struct run {
	struct options *options;
	struct md_install install;
	struct md_policy policy;
	char db[PATH_MAX], policy_dir[PATH_MAX], state_dir[PATH_MAX], output[PATH_MAX];
	int lock; /* of the worker; -1: none */
	struct md_program *programs;
	size_t nr, room;
	size_t nr_refused, nr_failed;
	json_t *rows; /* NULL: text */
};

/* Ownership: takes @program. */
static int add(struct run *run, struct md_program *program)
{
	for (size_t i = 0; i < run->nr; i++)
		if (!strcmp(run->programs[i].path, program->path)) {
			md_program_fini(program);
			return 0;
		}
	if (mp_grow(run->programs, run->room, run->nr + 1)) {
		md_program_fini(program);
		return md_cli_fail("out of memory");
	}
	run->programs[run->nr++] = *program;
	return 0;
}

/* A file of the store that may be gone, or that no rule names. */
static int add_known(struct run *run, const char *path)
{
	struct md_program program;

	if (!path || path[0] != '/' || md_program_read(path, &program, NULL))
		return 0;
	if (run->options->access.config.install == MD_INSTALL_RULES &&
	    !md_policy_rule(&run->policy, program.path)) {
		md_program_fini(&program);
		return 0;
	}
	return add(run, &program);
}

/* The files of the store, and those that have a job. */
static int add_all(struct run *run)
{
	struct mp_module *modules = NULL;
	struct mp_job *jobs = NULL;
	size_t nr_modules = 0, nr_jobs = 0;
	struct mp_err err = {""};
	int r = 0;

	if (mp_store_list_modules(run->install.store, 0, &modules, &nr_modules, &err) ||
	    mp_store_list_jobs(run->install.store, &jobs, &nr_jobs, &err))
		r = md_cli_fail("%s", err.msg);
	for (size_t i = 0; i < nr_modules && !r; i++)
		if (modules[i].kind == MP_MODULE_FILE)
			r = add_known(run, modules[i].path);
	for (size_t i = 0; i < nr_jobs && !r; i++)
		r = add_known(run, jobs[i].path);
	mp_store_free_jobs(jobs, nr_jobs);
	mp_store_free_modules(modules, nr_modules);
	return r;
}

static int add_build_id(struct run *run, const char *text)
{
	uint8_t build_id[MP_BUILD_ID_MAX];
	size_t size = md_build_id_parse(text, build_id), nr = 0, before = run->nr;
	struct mp_module *modules = NULL;
	struct mp_err err = {""};
	int r = 0;

	if (!size)
		return md_cli_fail("%s: no such file, and no build-id", text);
	if (!run->install.store ||
	    mp_store_list_modules(run->install.store, 0, &modules, &nr, &err))
		return md_cli_fail("%s", err.msg[0] ? err.msg : "there is no store");
	for (size_t i = 0; i < nr && !r; i++) {
		struct md_program program;

		if (modules[i].kind != MP_MODULE_FILE || modules[i].id.build_id_len < size ||
		    memcmp(modules[i].id.build_id, build_id, size) != 0 ||
		    md_program_read(modules[i].path, &program, NULL))
			continue;
		if (mp_id_equal(&program.id, &modules[i].id))
			r = add(run, &program);
		else
			md_program_fini(&program);
	}
	mp_store_free_modules(modules, nr);
	if (r || run->nr > before)
		return r;
	md_cli_fail("%s: the store knows no file with this build-id", text);
	return MP_EXIT_NO_PROFILE;
}

static int add_named(struct run *run, const char *name)
{
	struct md_program program;
	struct mp_err err = {""};

	if (access(name, F_OK))
		return add_build_id(run, name);
	if (md_program_read(name, &program, &err))
		return md_cli_fail("%s", err.msg);
	return add(run, &program);
}

static int find_files(struct run *run)
{
	const struct options *o = run->options;
	int r = o->all ? add_all(run) : 0;

	for (int i = 0; i < o->access.words.nr && !r; i++)
		r = add_named(run, o->access.words.list[i]);
	return r;
}

/* ---- each file ------------------------------------------------------------------------------ */

static void print(struct run *run, const struct md_program *program, const struct md_wanted *w,
		  const struct md_install_result *result)
{
	if (run->rows) {
		json_array_append_new(
			run->rows, json_pack("{s:o, s:s, s:s, s:o, s:o, s:i, s:b}", "path",
					     mp_json_string(program->path), "action",
					     w->undo ? "undo" : "install", "state", result->state,
					     "reason", mp_json_string(result->why), "options",
					     mp_json_string(w->options), "release", (int)w->release,
					     "same_bytes",
					     result->made && !memcmp(result->hash, w->output_hash,
								     MD_SHA256_SIZE)));
		return;
	}
	md_cli_put_text(program->path);
	printf(": %s: ", result->state);
	md_cli_put_text(result->why);
	putchar('\n');
	fflush(stdout);
}

/* Return: exit status. */
static int do_one(struct run *run, const struct md_program *program, const struct md_wanted *w)
{
	struct md_install_result result;
	struct mp_err err = {""};
	int r = md_install_do(&run->install, program, w, &result, &err);

	if (r) {
		if (md_fleet_failed(r, &err) == MP_EXIT_LATER)
			return MP_EXIT_LATER;
		run->nr_failed++;
		result.state = "failed";
		snprintf(result.why, sizeof(result.why), "%.500s", err.msg);
	}
	run->nr_refused += !strcmp(result.state, "refused");
	run->nr_failed += !r && !strcmp(result.state, "failed");
	print(run, program, w, &result);
	if (run->install.output || run->install.dry_run)
		return 0;
	/* The file is as it should be, even if the server does not get to know it now. */
	if (md_wanted_report(run->install.conn, w, result.state, result.why,
			     result.made ? result.hash : NULL, &err))
		md_cli_note("%s", err.msg);
	return md_child_is_stopped() ? MP_EXIT_FAILED : 0;
}

/* Asks for a group of files, and does what is wanted. Several files may be one module. */
static int do_group(struct run *run, size_t first, size_t nr)
{
	struct mp_id *ids = calloc(nr, sizeof(*ids));
	struct md_wanted *wanted = NULL;
	struct mp_err err = {""};
	size_t nr_wanted = 0;
	int r;

	if (!ids)
		return md_cli_fail("out of memory");
	for (size_t i = 0; i < nr; i++)
		ids[i] = run->programs[first + i].id;
	r = md_wanted_ask(run->install.conn, ids, nr, &wanted, &nr_wanted, &err);
	free(ids);
	if (r)
		return md_fleet_failed(r, &err);
	for (size_t i = 0; i < nr && !r; i++)
		for (size_t j = 0; j < nr_wanted; j++)
			if (mp_id_equal(&run->programs[first + i].id, &wanted[j].id)) {
				r = do_one(run, &run->programs[first + i], &wanted[j]);
				break;
			}
	free(wanted);
	return r;
}

static int do_all(struct run *run)
{
	int r = 0;

	for (size_t i = 0; i < run->nr && !r; i += ASK_MAX)
		r = do_group(run, i, run->nr - i < ASK_MAX ? run->nr - i : ASK_MAX);
	if (r)
		return r;
	return run->nr_refused ? MP_EXIT_REFUSED : run->nr_failed ? MP_EXIT_FAILED : 0;
}

/* ---- start and end -------------------------------------------------------------------------- */

/* A relative path, as an absolute one: the verifier runs elsewhere. */
static int absolute(const char *path, char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";

	if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	return snprintf(out, PATH_MAX, "%s%s%s", cwd, path[0] == '/' ? "" : "/", path) <
			       PATH_MAX - 32
		       ? 0
		       : -ENAMETOOLONG;
}

/* Nothing is changed with --output and --dry-run; --all and build-ids need the store. */
static int start(struct run *run)
{
	const struct options *o = run->options;
	struct md_install *in = &run->install;
	struct mp_err err = {""};
	int r = 0;

	snprintf(run->policy_dir, PATH_MAX, "%s", o->policy_dir ? o->policy_dir : "");
	snprintf(run->state_dir, PATH_MAX, "%s", o->state_dir ? o->state_dir : "");
	if (!o->policy_dir)
		r = md_policy_default_dir(run->policy_dir, PATH_MAX, &err);
	if (!r)
		r = md_policy_read(run->policy_dir, &run->policy, &err);
	if (r) {
		md_cli_fail("%s", err.msg);
		return r == -EINVAL ? MP_EXIT_USAGE : MP_EXIT_FAILED;
	}
	if (o->output && absolute(o->output, run->output))
		return md_cli_fail("%s: %s", o->output, strerror(ENAMETOOLONG));
	if (!o->state_dir)
		r = md_state_default_dir(run->state_dir, PATH_MAX, &err);
	/* The worker must not work on a file at the same time. */
	if (!r)
		r = run->lock = md_state_lock(run->state_dir, &err);
	if (r >= 0 && o->db)
		snprintf(run->db, PATH_MAX, "%s", o->db);
	else if (r >= 0)
		r = mp_store_default_path(run->db, PATH_MAX, true, &err);
	if (r >= 0)
		r = mp_store_open(run->db, MP_STORE_WRITE, &in->store, &err);
	if (r < 0) {
		md_cli_fail("%s", err.msg);
		return r == -EBUSY ? MP_EXIT_LATER : MP_EXIT_FAILED;
	}
	r = md_fleet_access_connect(&run->options->access, &in->conn);
	if (r)
		return r;
	md_originals_set_backup_dir(o->backup_dir);
	in->db = run->db;
	in->backup_dir = o->backup_dir;
	in->state_dir = run->state_dir;
	in->policy = &run->policy;
	in->output = o->output ? run->output : NULL;
	in->dry_run = o->dry_run;
	in->named = !o->all;
	return 0;
}

static void stop(struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		md_program_fini(&run->programs[i]);
	free(run->programs);
	if (run->install.conn)
		PQfinish(run->install.conn);
	if (run->install.store)
		mp_store_close(run->install.store);
	if (run->lock >= 0)
		close(run->lock);
	md_policy_fini(&run->policy);
}

int md_fleet_command_install(int argc, char **argv)
{
	struct options o = {0};
	struct run run = {.options = &o, .lock = -1};
	json_t *root;
	int r;

	md_fleet_options(&usage, argc, argv, &o);
	md_child_catch_signals();
	if (o.json)
		run.rows = json_array();
	r = start(&run);
	if (!r)
		r = find_files(&run);
	if (!r)
		r = do_all(&run);
	stop(&run);
	if (!o.json || r == MP_EXIT_USAGE) {
		json_decref(run.rows);
		return md_cli_finish(r);
	}
	root = md_cli_json_new("install");
	json_object_set_new(root, "files", run.rows);
	return md_cli_json_print(root) ? MP_EXIT_FAILED : r;
}
