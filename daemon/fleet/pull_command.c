// SPDX-License-Identifier: Apache-2.0
/*
 * pull_command - the command "pull": options, the database that gets the profile, messages and exit
 * status; see pull.h. Decides that a file is written completely or not at all, and that only a file
 * that pull wrote is replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/client_command.h"
#include "daemon/fleet/pull.h"
#include "daemon/fleet/pull_target.h"
#include "daemon/stats/stats.h"
#include "libprof/base/settings.h"
#include "libprof/cli/since.h"
#include "libprof/cli/stdio.h"
#include "libprof/note/map.h"

#define QUANTILE      0.9
#define ARGUMENTS_MAX 256

struct options {
	struct md_fleet_access access;
	const char *db, *output;
	int64_t as_of_s; /* 0: now */
	double quantile;
	bool json, all_hosts;
	long top;
	const char *arguments[ARGUMENTS_MAX];
	size_t nr_arguments;
};

enum {
	KEY_DB = 256,
	KEY_AS_OF,
	KEY_CAP,
	KEY_ALL_HOSTS,
	KEY_TOP,
	KEY_JSON
};

static const struct argp_option option_table[] = {
	{"db", KEY_DB, "FILE", 0,
	 "Add the profiles to this database, instead of what was pulled before (default: see FILES "
	 "in the man page)",
	 0},
	{"output", 'o', "FILE", 0, "Write the profiles to a database of their own", 0},
	{"as-of", KEY_AS_OF, "TIME", 0, "Leave out counts of later days", 0},
	{"cap", KEY_CAP, "QUANTILE", 0,
	 "No host counts with more samples than this quantile of the hosts has (default: 0.9; 1: "
	 "no cap)",
	 0},
	{"all-hosts", KEY_ALL_HOSTS, NULL, 0,
	 "Include what this host sent. --db leaves it out, since the database may have it already",
	 0},
	{"top", KEY_TOP, "N", 0, "The N modules with the most samples", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0}};

static void parse_cap(struct options *o, struct argp_state *state, const char *arg)
{
	struct mp_err err = {""};

	if (mp_settings_number(arg, 0, 1, false, &o->quantile, &err))
		argp_error(state, "--cap=%s: %s", arg, err.msg);
}

static error_t finish(const struct options *o, struct argp_state *state)
{
	if (o->db && o->output)
		argp_error(state, "--db and --output exclude each other");
	if (!o->nr_arguments && !o->top)
		argp_error(state, "no module given: a build-id, a file, or --top=N");
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_DB: o->db = arg; return 0;
	case 'o': o->output = arg; return 0;
	case KEY_AS_OF:
		if (mp_since_parse(arg, time(NULL), &o->as_of_s) || o->as_of_s < 0)
			argp_error(state, "--as-of=%s: " MP_SINCE_FORMATS, arg);
		return 0;
	case KEY_CAP: parse_cap(o, state, arg); return 0;
	case KEY_ALL_HOSTS: o->all_hosts = true; return 0;
	case KEY_TOP: md_stats_limit(state, arg, &o->top); return 0;
	case KEY_JSON: o->json = true; return 0;
	case ARGP_KEY_ARG:
		if (o->nr_arguments == ARGUMENTS_MAX)
			argp_error(state, "at most %d modules", ARGUMENTS_MAX);
		o->arguments[o->nr_arguments++] = arg;
		return 0;
	case ARGP_KEY_END: return finish(o, state);
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	"BUILD-ID|FILE...",
	"Read the fleet's profile of modules into a database. A second pull replaces the first.\v"
	"A build-id may be cut to its first digits. Exit status: 0 done, 1 failed, 2 usage, 3 the "
	"fleet has no profile of a module, 75 the server is gone.",
	children,
	NULL,
	NULL};

/* ---- one module ---------------------------------------------------------------------------- */

struct pull {
	struct options *options;
	PGconn *conn;
	struct md_pull_request request;
	struct mp_store *store;
	json_t *modules; /* what was pulled */
	size_t nr_missing;
};

static void report_module(struct pull *p, const struct mp_fleet_profile *profile,
			  const struct md_pull_stats *s)
{
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	json_t *m = json_object();

	mp_id_format_build_id(&profile->id, build_id);
	json_object_set_new(m, "build_id", json_string(build_id));
	json_object_set_new(m, "path", md_stats_json_string(profile->path));
	json_object_set_new(m, "samples", json_integer((json_int_t)s->samples));
	json_object_set_new(m, "transfers", json_integer((json_int_t)s->transfers));
	json_object_set_new(m, "nr_hosts", json_integer((json_int_t)s->nr_hosts));
	json_object_set_new(m, "rows", json_integer((json_int_t)s->nr_rows));
	json_object_set_new(m, "bad_rows", json_integer((json_int_t)s->nr_bad));
	json_object_set_new(m, "outside", json_integer((json_int_t)s->outside));
	json_array_append_new(p->modules, m);
	if (!p->options->json) {
		md_stats_put_text(profile->path[0] ? profile->path : build_id);
		printf(": %" PRIu64 " samples", s->samples);
		if (s->transfers)
			printf(" and %" PRIu64 " transfers", s->transfers);
		printf(" of %" PRId64 " hosts\n", s->nr_hosts);
	}
	if (s->nr_bad)
		md_stats_note("%s: %" PRIu64 " of %" PRIu64
			      " rows are not sound, and were left out",
			      profile->path, s->nr_bad, s->nr_rows);
	if (s->outside)
		md_stats_note("%s: %" PRIu64
			      " counts lie outside of the file's code, and were left "
			      "out",
			      profile->path, s->outside);
}

/* @name: for messages and as the module's path. Return: exit status. */
static int pull_module(struct pull *p, const struct md_pull_module *module, const char *name)
{
	struct mp_fleet_profile profile = {.id = module->id,
					   .kind = module->kind,
					   .path = name,
					   .text_size = module->text_size};
	char build_id[2 * MP_BUILD_ID_MAX + 1];
	struct md_pull_stats stats;
	struct mp_err err = {""}, ignored;
	int r = md_pull_profile(p->conn, &p->request, &profile, &stats, &err);

	mp_id_format_build_id(&module->id, build_id);
	snprintf(profile.why, sizeof(profile.why),
		 "the fleet's profile of %.100s, of %" PRId64 " hosts", name[0] ? name : build_id,
		 stats.nr_hosts);
	if (!r) {
		r = mp_fleet_put_pulled(p->store, &profile, time(NULL), &err);
		if (!r)
			report_module(p, &profile, &stats);
	} else if (r == -ENOENT) {
		/* The fleet has no counts of this module any more: take out those of the earlier pull. */
		p->nr_missing++;
		if (mp_fleet_put_pulled(p->store, &profile, time(NULL), &ignored))
			r = -EIO;
	}
	free(profile.counts);
	free(profile.edges);
	if (!r)
		return 0;
	md_stats_fail("%s: %s", name[0] ? name : build_id, err.msg);
	if (r == -ENOENT)
		return 0;
	return r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
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
		return md_stats_fail("%s", err.msg);
	}
	module.id = elf->id;
	module.text_size = mp_elf_text_size(elf);
	/* The counts of an optimised file are those of its original, whose code it still has. */
	if (!mp_map_read(elf, &map, NULL))
		module.id = map->original;
	p->request.elf = elf;
	r = pull_module(p, &module, real ? real : path);
	p->request.elf = NULL;
	mp_map_free(map);
	mp_elf_close(elf);
	free(real);
	return r;
}

/* Return: bytes of the build-id, 0: @text is none. An odd last digit cannot be looked for. */
static size_t parse_build_id(const char *text, uint8_t out[MP_BUILD_ID_MAX])
{
	size_t len = strlen(text);

	if (len < 4 || len % 2 || len > 2 * MP_BUILD_ID_MAX ||
	    strspn(text, "0123456789abcdefABCDEF") != len)
		return 0;
	for (size_t i = 0; i < len / 2; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		out[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return len / 2;
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
	size_t size = parse_build_id(text, build_id), nr = 0;
	struct md_pull_module *modules = NULL;
	struct mp_err err = {""};
	int r;

	if (!size)
		return md_stats_fail("%s: no such file, and no build-id", text);
	r = md_pull_find(p->conn, build_id, size, &modules, &nr, &err);
	if (r)
		return md_stats_fail("%s", err.msg);
	if (!nr) {
		md_stats_fail("%s: the fleet has no such module", text);
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
		return md_stats_fail("%s", err.msg);
	p->nr_missing += !nr;
	if (!nr)
		md_stats_fail("the fleet has no counts");
	return pull_list(p, modules, nr);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Return: exit status. What was pulled before a failure stays in the database. */
static int pull_all(struct pull *p)
{
	const struct options *o = p->options;
	int r = 0;

	for (size_t i = 0; i < o->nr_arguments && !r; i++)
		r = access(o->arguments[i], F_OK) ? pull_build_id(p, o->arguments[i])
						  : pull_file(p, o->arguments[i]);
	if (!r && o->top)
		r = pull_top(p);
	return !r && p->nr_missing ? MD_FLEET_NO_PROFILE : r;
}

static int report(const struct pull *p, const char *path)
{
	json_t *root;

	if (!p->options->json)
		return md_stats_finish(MD_FLEET_DONE);
	root = md_stats_json_new("pull");
	json_object_set_new(root, "output", md_stats_json_string(path));
	json_object_set(root, "modules", p->modules);
	return md_stats_json_print(root);
}

int md_fleet_command_pull(int argc, char **argv)
{
	struct options o = {.quantile = QUANTILE};
	struct md_pull_target target;
	struct pull p = {.options = &o};
	struct mp_err err = {""};
	bool keep;
	int r;

	md_stats_set_program(argv[0]);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	mp_stdio_parsed();
	r = md_fleet_access_connect(&o.access, &p.conn);
	if (r)
		return r;
	p.request.quantile = o.quantile;
	p.request.without_self = !o.output && !o.all_hosts;
	p.request.until_day = (int32_t)((o.as_of_s ? o.as_of_s : time(NULL)) / MP_SECONDS_PER_DAY);
	/* The server's day may have begun already. */
	p.request.until_day += !o.as_of_s;
	p.modules = json_array();
	r = md_pull_target_open(&target, o.db, o.output, &err);
	if (r) {
		r = md_stats_fail("%s", err.msg);
	} else {
		p.store = target.store;
		r = pull_all(&p);
		keep = !r || (r == MD_FLEET_NO_PROFILE && json_array_size(p.modules));
		if (md_pull_target_close(&target, keep, &err))
			r = md_stats_fail("%s", err.msg);
	}
	if (!r)
		r = report(&p, target.path);
	json_decref(p.modules);
	PQfinish(p.conn);
	return r;
}
