// SPDX-License-Identifier: Apache-2.0
/*
 * pull_command - the command "pull": options, the database that gets the profile, messages and exit
 * status; see pull.h. Decides that a file is written completely or not at all, and that only a file
 * that pull wrote is replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pull/pull.h"
#include "daemon/fleet/pull/pull_names.h"
#include "daemon/stats/interrupt.h"
#include "daemon/cli/cli.h"
#include "libprof/base/defaults.h"
#include "libprof/base/newfile.h"
#include "libprof/note/map.h"
#include "libprof/store/store.h"

#define MP_OPTIONS struct options

#define QUANTILE      0.9
#define ARGUMENTS_MAX 256

struct options {
	struct md_fleet_access access;
	const char *db, *output;
	int64_t as_of_s; /* 0: now */
	double quantile;
	bool json, all_hosts, counts_only;
	long top;
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "db", 0, db, "FILE",
		 "Add the profiles to this database, instead of what was pulled before (default: see FILES "
		 "in the man page)"),
	MP_VALUE(TEXT, "output", 'o', output, "FILE",
		 "Write the profiles to a database of their own"),
	MP_VALUE(TIME, "as-of", 0, as_of_s, "TIME", "Leave out counts of later days"),
	MP_NUMBER(
		"cap", 0, quantile, 0, 1, "QUANTILE",
		"No host counts with more samples than this quantile of the hosts has (default: 0.9; 1: "
		"no cap)"),
	MP_FLAG("all-hosts", all_hosts,
		"Include what this host sent. --db leaves it out, since the database may have it already"),
	MP_FLAG("counts-only", counts_only, "Leave out paths, calling contexts and sampled calls"),
	MP_VALUE(LIMIT, "top", 0, top, "N", "The N modules with the most samples"),
	MD_JSON,
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (o->db && o->output)
		argp_error(state, "--db and --output exclude each other");
	if (!o->access.words.nr && !o->top)
		argp_error(state, "no module given: a build-id, a file, or --top=N");
	if (o->as_of_s < 0)
		argp_error(state, "--as-of: a time before 1970");
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "BUILD-ID|FILE...",
	.words = MP_AT(access.words),
	.most = ARGUMENTS_MAX,
	.check = check,
	.doc = "Read the fleet's profile of modules into a database. A second pull replaces the first.\v"
	       "A build-id may be cut to its first digits. Exit status: 0 done, 1 failed, 2 usage, 3 the "
	       "fleet has no profile of a module, 75 the server is gone."};

/* ---- the database that gets the profiles ---------------------------------------------------- */

/* An existing database, or a file that appears complete or not at all. */
struct target {
	struct mp_store *store;
	char path[PATH_MAX];
	char temporary[PATH_MAX]; /* ""; or the file that will get @path's name */
};

/* A database with counts of this machine must not be lost to a wrong --output. */
static int check_old(const char *path, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	struct mp_store *store;
	struct stat st;
	size_t nr = 0;
	bool pulled = true;

	if (lstat(path, &st))
		return errno == ENOENT ? 0
				       : mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || mp_store_open(path, MP_STORE_READ, &store, NULL))
		return mp_err_set(err, EEXIST, "%s: exists, and no pull wrote it", path);
	if (mp_store_list_sessions(store, &sessions, &nr, NULL))
		pulled = false;
	for (size_t i = 0; i < nr; i++)
		pulled &= !strcmp(sessions[i].collector, "fleet");
	free(sessions);
	mp_store_close(store);
	if (!pulled)
		return mp_err_set(err, EEXIST, "%s: exists, and no pull wrote it", path);
	return 0;
}

static int make_temporary(struct target *target, struct mp_err *err)
{
	mode_t mask = umask(0);
	int fd, r = mp_directory_check(target->path, err);

	umask(mask);
	if (r)
		return r;
	if (snprintf(target->temporary, sizeof(target->temporary), "%s.XXXXXX", target->path) >=
	    (int)sizeof(target->temporary))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", target->path);
	fd = mkstemp(target->temporary);
	if (fd < 0) {
		target->temporary[0] = '\0';
		return mp_err_set(err, errno, "%s: %s", target->path, strerror(errno));
	}
	md_interrupt_unlinks(target->temporary);
	fchmod(fd, 0644 & ~mask);
	close(fd);
	return 0;
}

/*
 * Opens the database @db, or a new file for @output, or the default database if both are NULL. @output may exist if it is a
 * database with nothing but pulled profiles. Return: 0, -EEXIST, -errno.
 */
static int open_target(struct target *target, const char *db, const char *output,
		       struct mp_err *err)
{
	const char *path = output ? output : db;
	int r = 0;

	memset(target, 0, sizeof(*target));
	if (path &&
	    snprintf(target->path, sizeof(target->path), "%s", path) >= (int)sizeof(target->path))
		return mp_err_set(err, ENAMETOOLONG, "the path of the database is too long");
	if (!path)
		r = mp_store_default_path(target->path, sizeof(target->path), true, err);
	if (!r && output)
		r = check_old(target->path, err);
	if (!r && output)
		r = make_temporary(target, err);
	if (!r)
		r = mp_store_open(output ? target->temporary : target->path, MP_STORE_WRITE,
				  &target->store, err);
	if (r)
		md_interrupt_remove();
	return r;
}

/* Closes it. A new file gets its name if @keep, and is removed otherwise. */
static int close_target(struct target *target, bool keep, struct mp_err *err)
{
	char name[MP_PATH_ROOM];
	int r = 0;

	mp_store_close(target->store);
	target->store = NULL;
	if (!target->temporary[0])
		return 0;
	snprintf(name, sizeof(name), "%s-wal", target->temporary);
	if (keep && !access(name, F_OK))
		r = mp_err_set(err, EIO, "%s: could not be completed", target->path);
	else if (keep && rename(target->temporary, target->path))
		r = mp_err_set(err, errno, "%s: %s", target->path, strerror(errno));
	if (r || !keep)
		md_interrupt_remove();
	md_interrupt_unlinks(NULL);
	return r;
}

/* ---- one module ---------------------------------------------------------------------------- */

struct pull {
	struct options *options;
	PGconn *conn;
	struct md_pull_request request;
	struct mp_store *store;
	struct md_pull_names names;
	json_t *modules; /* what was pulled */
	size_t nr_missing;
};

static void print_module(const char *name, const struct md_pull_stats *s)
{
	const struct {
		uint64_t nr;
		const char *what;
	} parts[] = {{s->transfers, "transfers"},
		     {s->paths, "paths"},
		     {s->contexts, "samples with calling contexts"},
		     {s->calls, "sampled calls"}};

	md_cli_put_text(name);
	printf(": %" PRIu64 " samples", s->samples);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].nr)
			printf(", %" PRIu64 " %s", parts[i].nr, parts[i].what);
	printf(" of %" PRId64 " hosts\n", s->nr_hosts);
}

static void note_module(const struct mp_fleet_profile *profile, const struct md_pull_stats *s)
{
	if (s->nr_bad)
		md_cli_note("%s: %" PRIu64 " of %" PRIu64 " rows are not sound, and were left out",
			    profile->path, s->nr_bad, s->nr_rows);
	if (s->outside)
		md_cli_note("%s: %" PRIu64 " counts lie outside of the file's code, and were left "
			    "out",
			    profile->path, s->outside);
	if (s->left_out)
		md_cli_note("%s: %" PRIu64 " counts of paths were left out: there are too many "
			    "different ones",
			    profile->path, s->left_out);
	if (profile->left_out_contexts || profile->left_out_calls)
		md_cli_note("%s: the database has %s of its own of this program: the fleet's were "
			    "left out",
			    profile->path,
			    profile->left_out_contexts ? "calling contexts" : "sampled calls");
}

static void report_module(struct pull *p, const struct mp_fleet_profile *profile,
			  const struct md_pull_stats *s)
{
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	json_t *m;

	mp_id_format_build_id(&profile->id, build_id);
	m = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "build_id",
		      build_id, "path", mp_json_string(profile->path), "samples",
		      (json_int_t)s->samples, "transfers", (json_int_t)s->transfers, "paths",
		      (json_int_t)s->paths, "contexts", (json_int_t)s->contexts, "calls",
		      (json_int_t)s->calls, "nr_hosts", (json_int_t)s->nr_hosts, "rows",
		      (json_int_t)s->nr_rows, "bad_rows", (json_int_t)s->nr_bad, "outside",
		      (json_int_t)s->outside);
	json_array_append_new(p->modules, m);
	if (!p->options->json)
		print_module(profile->path[0] ? profile->path : build_id, s);
	note_module(profile, s);
}

/* @name: for messages and as the module's path. Return: exit status. */
static int pull_module(struct pull *p, const struct md_pull_module *module, const char *name)
{
	struct mp_fleet_profile profile = {.id = module->id,
					   .kind = module->kind,
					   .path = name,
					   .text_size = module->text_size};
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	struct md_pull_stats cli;
	struct mp_err err = {""}, ignored;
	int r = md_pull_profile(p->conn, &p->request, &profile, &cli, &err);

	mp_id_format_build_id(&module->id, build_id);
	snprintf(profile.why, sizeof(profile.why),
		 "the fleet's profile of %.100s, of %" PRId64 " hosts", name[0] ? name : build_id,
		 cli.nr_hosts);
	if (!r) {
		if (md_pull_names_want(&p->names, &profile.contexts) ||
		    md_pull_names_want(&p->names, &profile.calls))
			r = mp_err_set(&err, ENOMEM, "out of memory");
		if (!r)
			r = mp_fleet_put_pulled(p->store, &profile, time(NULL), &err);
		if (!r)
			report_module(p, &profile, &cli);
	} else if (r == -ENOENT) {
		/* The fleet has no counts of this module any more: take out those of the earlier pull. */
		p->nr_missing++;
		if (mp_fleet_put_pulled(p->store, &profile, time(NULL), &ignored))
			r = -EIO;
	}
	md_pull_free_profile(&profile);
	if (!r)
		return 0;
	md_cli_fail("%s: %s", name[0] ? name : build_id, err.msg);
	return r == -ENOENT ? 0 : md_fleet_status(r);
}

static int pull_file(struct pull *p, const char *path)
{
	struct md_pull_module module = {.kind = MP_MODULE_FILE};
	char *real = realpath(path, NULL);
	struct mp_elf *elf;
	struct mp_map *map = NULL;
	struct mp_err err = {""};
	int r = mp_elf_open(path, MP_ELF_ID, &elf, &err);

	if (r) {
		free(real);
		return md_cli_fail("%s", err.msg);
	}
	module.id = elf->id;
	module.text_size = mp_elf_text_size(elf);
	/* The counts of an optimised file are those of its original, whose code it still has. */
	r = mp_map_read(elf, &map, &err);
	if (!r)
		module.id = map->original;
	p->request.elf = elf;
	r = mp_err_is_failure(r) ? md_cli_fail("%s", err.msg)
				 : pull_module(p, &module, real ? real : path);
	p->request.elf = NULL;
	mp_map_free(map);
	mp_elf_close(elf);
	free(real);
	return r;
}

static int pull_list(struct pull *p, struct md_pull_module *modules, size_t nr)
{
	int r = 0;

	for (size_t i = 0; i < nr && !r; i++)
		r = pull_module(p, &modules[i], modules[i].name);
	md_pull_free_modules(modules, nr);
	return r;
}

static int pull_build_id(struct pull *p, const char *text)
{
	uint8_t build_id[MP_BUILD_ID_MAX];
	size_t size = md_build_id_parse(text, build_id), nr = 0;
	struct md_pull_module *modules = NULL;
	struct mp_err err = {""};
	int r;

	if (!size)
		return md_cli_fail("%s: no such file, and no build-id", text);
	r = md_pull_find(p->conn, build_id, size, &modules, &nr, &err);
	if (r)
		return md_cli_fail("%s", err.msg);
	if (!nr) {
		md_cli_fail("%s: the fleet has no such module", text);
		p->nr_missing++;
	}
	return pull_list(p, modules, nr);
}

static int pull_top(struct pull *p)
{
	struct md_pull_module *modules = NULL;
	struct mp_err err = {""};
	size_t nr = 0;
	int r = md_pull_top(p->conn, p->request.until_day, (int)p->options->top, &modules, &nr,
			    &err);

	if (r)
		return md_cli_fail("%s", err.msg);
	p->nr_missing += !nr;
	if (!nr)
		md_cli_fail("the fleet has no counts");
	return pull_list(p, modules, nr);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Return: exit status. What was pulled before a failure stays in the database. */
static int pull_all(struct pull *p)
{
	const struct options *o = p->options;
	int r = 0;

	for (int i = 0; i < o->access.words.nr && !r; i++) {
		const char *name = o->access.words.list[i];

		r = access(name, F_OK) ? pull_build_id(p, name) : pull_file(p, name);
	}
	if (!r && o->top)
		r = pull_top(p);
	return !r && p->nr_missing ? MP_EXIT_NO_PROFILE : r;
}

/* A database of its own knows only what was pulled: functions of libraries need their modules. */
static int find_names(struct pull *p)
{
	struct mp_store *local = NULL;
	struct mp_err err = {""};
	char path[PATH_MAX];
	int r;

	if (!p->options->output)
		return 0;
	if (!mp_store_default_path(path, sizeof(path), false, &err) &&
	    mp_store_open(path, MP_STORE_READ, &local, &err))
		local = NULL;
	r = md_pull_names_find(&p->names, p->conn, local, p->store, &err);
	mp_store_close(local);
	return r ? md_fleet_failed(r, &err) : 0;
}

static int report(const struct pull *p, const char *path)
{
	json_t *root;

	if (!p->options->json)
		return md_cli_finish(MP_EXIT_DONE);
	root = md_cli_json_new("pull");
	json_object_set_new(root, "output", mp_json_string(path));
	json_object_set(root, "modules", p->modules);
	return md_cli_json_print(root);
}

int md_fleet_command_pull(int argc, char **argv)
{
	struct options o = {.quantile = QUANTILE};
	struct target target;
	struct pull p = {.options = &o};
	struct mp_err err = {""};
	bool keep;
	int r;

	r = md_fleet_start(&usage, argc, argv, &o, &p.conn);
	if (r)
		return r;
	p.request.quantile = o.quantile;
	p.request.counts_only = o.counts_only;
	p.request.without_self = !o.output && !o.all_hosts;
	p.request.until_day = (int32_t)((o.as_of_s ? o.as_of_s : time(NULL)) / MP_SECONDS_PER_DAY);
	/* The server's day may have begun already. */
	p.request.until_day += !o.as_of_s;
	p.modules = json_array();
	r = open_target(&target, o.db, o.output, &err);
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else {
		p.store = target.store;
		r = pull_all(&p);
		if ((!r || r == MP_EXIT_NO_PROFILE) && p.names.nr && find_names(&p))
			r = MP_EXIT_FAILED;
		keep = !r || (r == MP_EXIT_NO_PROFILE && json_array_size(p.modules));
		if (close_target(&target, keep, &err))
			r = md_cli_fail("%s", err.msg);
	}
	if (!r)
		r = report(&p, target.path);
	json_decref(p.modules);
	md_pull_names_fini(&p.names);
	PQfinish(p.conn);
	return r;
}
