// SPDX-License-Identifier: Apache-2.0
/*
 * morph_watch - the command "watch": adds, removes and lists the rules that say which programs Morph
 * looks after by itself. A rule is a file of watch.d (policy.h); an administrator may edit it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/rule_file.h"
#include "daemon/morph/units.h"
#include "daemon/policy/deny.h"
#include "daemon/policy/policy.h"
#include "libprof/base/text.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

struct watch {
	struct md_stats *stats;
	const char *action, *name, *policy_dir;
	char **what; /* arguments behind the action */
	int nr_what;
	struct md_rule_text rule;
	char dir[4096];
};

enum {
	KEY_ADOPT = 256,
	KEY_ADVISE,
	KEY_NAME,
	KEY_POLICY,
	KEY_UNIT,
	KEY_USER,
	KEY_RECIPE /* and those that follow, in the order of enum md_recipe */
};

static const struct argp_option options[] = {
	{"adopt", KEY_ADOPT, NULL, 0, "Put a version in place that an audit found faster", 0},
	{"advise", KEY_ADVISE, NULL, 0, "Only say that there is a faster version (default)", 0},
	{"name", KEY_NAME, "NAME", 0, "Name of the rule (default: that of the first program)", 0},
	{"unit", KEY_UNIT, "UNIT", 0, "Restart this service after its program was replaced", 0},
	{"user", KEY_USER, "USER", 0, "Run COMMAND as this user", 0},
	{"policy", KEY_POLICY, "DIR", 0, "The directory with morph.conf and watch.d", 0},
	{0, 0, 0, 0, "How audits use COMMAND; the options of morph-audit of these names:", 1},
	{"client", KEY_RECIPE + MD_RECIPE_CLIENT, "CMD", 0,
	 "COMMAND starts a server, and this shell command talks to it and ends", 1},
	{"ready", KEY_RECIPE + MD_RECIPE_READY, "WHEN", 0,
	 "The server is ready: tcp:[HOST:]PORT, unix:PATH, or a shell command that succeeds", 1},
	{"setup", KEY_RECIPE + MD_RECIPE_SETUP, "CMD", 0, "Run once, before the audit", 1},
	{"prepare", KEY_RECIPE + MD_RECIPE_PREPARE, "CMD", 0, "Run before each run", 1},
	{"teardown", KEY_RECIPE + MD_RECIPE_TEARDOWN, "CMD", 0, "Run once, after the audit", 1},
	{"metric", KEY_RECIPE + MD_RECIPE_METRIC, "M", 0, "What is compared; default: CPU time", 1},
	{"better", KEY_RECIPE + MD_RECIPE_BETTER, "WAY", 0,
	 "Of a metric /REGEX/: higher (default) or lower is better", 1},
	{"requests", KEY_RECIPE + MD_RECIPE_REQUESTS, "/REGEX/", 0,
	 "Divide the time by this number in the output", 1},
	{"filter", KEY_RECIPE + MD_RECIPE_FILTER, "CMD", 0,
	 "Shell command that the output passes through first", 1},
	{"stdin", KEY_RECIPE + MD_RECIPE_STDIN, "FILE", 0, "Input of each run", 1},
	{0},
};

/* Say what is missing on the command line, where the policy would name a file that is not there. */
static void check_recipe(const struct watch *w, struct argp_state *state)
{
	const char *const *recipe = w->rule.recipe;

	for (int i = 0; i < MD_NR_RECIPE; i++) {
		if (!recipe[i])
			continue;
		if (strcmp(w->action, "add") != 0)
			argp_error(state, "only add takes --%s", md_recipe_key(i));
		if (!w->rule.command)
			argp_error(state, "--%s: there is no COMMAND behind --", md_recipe_key(i));
		if (!recipe[i][0])
			argp_error(state, "--%s: empty", md_recipe_key(i));
	}
	if (!recipe[MD_RECIPE_CLIENT] != !recipe[MD_RECIPE_READY])
		argp_error(state,
			   "--client and --ready are given together: COMMAND starts a server");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct watch *w = state->input;

	if (key >= KEY_RECIPE && key < KEY_RECIPE + MD_NR_RECIPE) {
		w->rule.recipe[key - KEY_RECIPE] = arg;
		return 0;
	}

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = w->stats; return 0;
	case KEY_ADOPT: w->rule.mode = "adopt"; return 0;
	case KEY_ADVISE: w->rule.mode = "advise"; return 0;
	case KEY_NAME: w->name = arg; return 0;
	case KEY_UNIT: w->rule.unit = arg; return 0;
	case KEY_USER: w->rule.user = arg; return 0;
	case KEY_POLICY: w->policy_dir = arg; return 0;
	case ARGP_KEY_ARG:
		/* Behind -- stands the command that trains and audits. */
		if (w->action && state->quoted && state->next > state->quoted) {
			w->rule.command = state->argv + state->next - 1;
			w->rule.nr_command = state->argc - state->next + 1;
			state->next = state->argc;
			return 0;
		}
		if (!w->action)
			w->action = arg;
		else
			w->what[w->nr_what++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!w->action)
			argp_error(state, "say add, rm or list");
		if (strcmp(w->action, "add") != 0 && strcmp(w->action, "rm") != 0 &&
		    strcmp(w->action, "list") != 0)
			argp_error(state, "%s: not add, rm or list", w->action);
		if (strcmp(w->action, "list") != 0 && !w->nr_what)
			argp_error(state, "%s: which program?", w->action);
		if (!strcmp(w->action, "list") && w->nr_what)
			argp_error(state, "%s: too many arguments", w->what[0]);
		if (w->name && !md_rule_name_is_valid(w->name))
			argp_error(state, "--name=%s: not letters, digits, '.', '_' and '-'",
				   w->name);
		if (w->rule.command && strcmp(w->action, "add") != 0)
			argp_error(state, "only add takes a command");
		if (!strcmp(w->action, "add") && !w->rule.command && w->rule.mode &&
		    !strcmp(w->rule.mode, "adopt"))
			argp_error(state, "--adopt: what was not found faster is never adopted, "
					  "and a COMMAND that uses the program is needed to find "
					  "out; give it behind --");
		check_recipe(w, state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	options,
	parse,
	"add|rm|list [PROGRAM...] [-- COMMAND...]",
	"Look after programs from now on: each is optimised when the machine is idle and there is "
	"something to gain.\v"
	"PROGRAM is a path, a command, a package (package:NAME), a build-id, or a pattern such as "
	"'/opt/db/bin/*'. COMMAND uses the program: it trains it, and audits compare both versions "
	"with it. With --client, COMMAND starts a server, and what was sampled trains it. rm takes "
	"the name of a rule, too.",
	children,
	0,
	0};

/* ---- names -------------------------------------------------------------------------------------- */

/* The database only helps to find programs by name, so it may be missing. */
static void load_quietly(struct watch *w, struct md_machine *machine)
{
	struct mp_store *store = NULL;
	char path[4096];
	const char *db = w->stats->db;

	*machine = (struct md_machine){0};
	if (!db && mp_store_default_path(path, sizeof(path), false, NULL))
		return;
	if (mp_store_open(db ? db : path, MP_STORE_READ, &store, NULL) &&
	    (db || mp_store_open(MP_STORE_SERVICE_PATH, MP_STORE_READ, &store, NULL)))
		return;
	if (md_machine_load(store, 0, machine, NULL))
		md_machine_fini(machine);
	mp_store_close(store);
}

/* "package:NAME" and patterns stay as they are; other names become paths. */
static int resolve(const struct md_machine *machine, const char *what, struct md_program *out)
{
	const struct md_policy none_said = {.dir = ""};
	char why[256];
	int r;

	*out = (struct md_program){0};
	if (!strncmp(what, "package:", 8) || (what[0] == '/' && strpbrk(what, "*?["))) {
		out->path = strdup(what);
		return out->path ? 0 : md_stats_fail("out of memory");
	}
	if (what[strspn(what, "0123456789.")] == '%') {
		md_stats_fail("%s: a share of the machine is a setting of morph.conf: share = %s",
			      what, what);
		return MP_EXIT_USAGE;
	}
	r = md_morph_find(machine, what, out);
	if (!r && md_deny_path(&none_said, out->path, why, sizeof(why))) {
		md_stats_fail("%s: %s", out->path, why);
		return MP_EXIT_REFUSED;
	}
	return r;
}

/* ---- actions ------------------------------------------------------------------------------------ */

static json_t *action_json(const struct watch *w, const char *file)
{
	json_t *root = md_stats_json_new("watch"), *programs = json_array();

	for (size_t i = 0; i < w->rule.nr_programs; i++)
		json_array_append_new(programs, md_stats_json_string(w->rule.programs[i]));
	json_object_set_new(root, "action", json_string(w->action));
	json_object_set_new(root, "file", md_stats_json_string(file));
	json_object_set_new(root, "programs", programs);
	return root;
}

/* A rule of the machine's policy is the word that lets the worker begin by itself. */
static enum md_units start_worker(const struct watch *w)
{
	enum md_units units = w->policy_dir ? MD_UNITS_NONE : md_units_enable();

	if (units == MD_UNITS_FAILED)
		md_stats_note("morph-optimize.timer is not enabled, so nothing begins by itself");
	return units;
}

static int write_rule(struct watch *w)
{
	enum md_units units;
	struct md_policy policy;
	struct mp_err err = {0};
	char name[128], file[4400];
	int r;

	if (w->name)
		snprintf(name, sizeof(name), "%s", w->name);
	else
		md_rule_name_of(w->rule.programs[0], name, sizeof(name));
	r = md_rule_file_write(w->dir, name, &w->rule, file, sizeof(file), &err);
	if (!r) {
		r = md_policy_read(w->dir, &policy, &err);
		/* The policy may be refused because of this very rule. */
		md_rule_file_settle(file, !r);
		md_policy_fini(&policy);
	}
	if (r) {
		md_stats_fail("%s", err.msg);
		return r == -EEXIST || r == -EINVAL ? MP_EXIT_USAGE : MP_EXIT_FAILED;
	}
	units = start_worker(w);
	if (w->stats->json)
		return md_stats_json_print(action_json(w, file));
	for (size_t i = 0; i < w->rule.nr_programs; i++) {
		fputs("Morph looks after ", stdout);
		mp_text_put(stdout, w->rule.programs[i]);
		printf(" from now on.\n");
	}
	fputs("The rule is ", stdout);
	mp_text_put(stdout, file);
	puts(".");
	if (units == MD_UNITS_CHANGED)
		puts("The worker is enabled (morph-optimize.timer): it works while the machine is idle.");
	return md_stats_finish(MP_EXIT_DONE);
}

static int add(struct watch *w)
{
	struct md_program *programs = calloc((size_t)w->nr_what, sizeof(*programs));
	const char **paths = calloc((size_t)w->nr_what, sizeof(*paths));
	struct md_machine machine;
	int r = programs && paths ? 0 : md_stats_fail("out of memory");

	load_quietly(w, &machine);
	for (int i = 0; i < w->nr_what && !r; i++) {
		r = resolve(&machine, w->what[i], &programs[i]);
		if (!r)
			paths[i] = programs[i].path;
	}
	w->rule.programs = paths;
	w->rule.nr_programs = (size_t)w->nr_what;
	if (!r)
		r = write_rule(w);
	md_programs_free(programs, programs ? (size_t)w->nr_what : 0);
	free(paths);
	md_machine_fini(&machine);
	return r;
}

static bool names(const struct md_rule *rule, const char *what, const char *path)
{
	for (size_t i = 0; rule->programs && rule->programs[i]; i++)
		if (!strcmp(rule->programs[i], what) || (path && !strcmp(rule->programs[i], path)))
			return true;
	for (size_t i = 0; rule->packages && rule->packages[i]; i++)
		if (!strncmp(what, "package:", 8) && !strcmp(rule->packages[i], what + 8))
			return true;
	return !strcmp(rule->name, what);
}

static int remove_one(struct watch *w, const struct md_policy *policy,
		      const struct md_machine *machine, const char *what)
{
	const struct md_program_search search = {.modules = machine->modules,
						 .nr_modules = machine->nr_modules};
	struct md_program program = {0};
	struct mp_err err = {0};
	size_t nr = 0;
	int r = 0;

	if (md_program_find(&search, what, &program, NULL))
		program = (struct md_program){0};
	for (size_t i = 0; i < policy->nr_rules && !r; i++) {
		if (!names(&policy->rules[i], what, program.path))
			continue;
		nr++;
		if (md_rule_file_remove(policy->rules[i].file, &err))
			r = md_stats_fail("%s", err.msg);
		else if (!w->stats->json) {
			mp_text_put(stdout, policy->rules[i].file);
			puts(" is removed.");
		}
	}
	md_program_fini(&program);
	if (!nr)
		return md_stats_fail("%s: no rule names it", what);
	return r;
}

static int read_policy(struct watch *w, struct md_policy *policy)
{
	struct mp_err err = {0};

	return md_policy_read(w->dir, policy, &err) ? md_stats_fail("%s", err.msg) : 0;
}

static int rm(struct watch *w)
{
	struct md_policy policy = {0};
	struct md_machine machine;
	int r = read_policy(w, &policy);

	load_quietly(w, &machine);
	for (int i = 0; i < w->nr_what && !r; i++)
		r = remove_one(w, &policy, &machine, w->what[i]);
	if (!r && w->stats->json) {
		w->rule.programs = (const char **)w->what;
		w->rule.nr_programs = (size_t)w->nr_what;
		r = md_stats_json_print(action_json(w, w->dir));
	}
	md_machine_fini(&machine);
	md_policy_fini(&policy);
	return r ? r : md_stats_finish(MP_EXIT_DONE);
}

static json_t *strings_json(char *const *list)
{
	json_t *array = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(array, md_stats_json_string(list[i]));
	return array;
}

static int list(struct watch *w)
{
	struct md_policy policy = {0};
	json_t *root = NULL, *rows = NULL;
	int r = read_policy(w, &policy);

	if (!r && w->stats->json) {
		root = md_stats_json_new("rules");
		rows = json_array();
		json_object_set_new(root, "share_percent", json_real(100 * policy.share));
	} else if (!r && policy.share > 0) {
		printf("Programs above %.1f %% of the machine: advise\n", 100 * policy.share);
	}
	for (size_t i = 0; i < policy.nr_rules && !r; i++) {
		const struct md_rule *rule = &policy.rules[i];
		const char *mode = md_policy_mode_name(md_policy_mode_of(&policy, rule));

		if (rows) {
			json_array_append_new(
				rows, json_pack("{s:o, s:o, s:o, s:o, s:s, s:s}", "name",
						md_stats_json_string(rule->name), "file",
						md_stats_json_string(rule->file), "programs",
						strings_json(rule->programs), "packages",
						strings_json(rule->packages), "mode", mode, "audit",
						md_policy_audit_name(rule->audit)));
			continue;
		}
		mp_text_put(stdout, rule->name);
		printf(": %s, audit: %s\n", mode, md_policy_audit_name(rule->audit));
		for (size_t k = 0; rule->programs && rule->programs[k]; k++)
			printf("    %s\n", rule->programs[k]);
		for (size_t k = 0; rule->packages && rule->packages[k]; k++)
			printf("    package %s\n", rule->packages[k]);
	}
	if (!r && !rows && !policy.nr_rules)
		puts("No program is watched. `morph watch add PROGRAM' begins.");
	md_policy_fini(&policy);
	if (!rows)
		return r ? r : md_stats_finish(MP_EXIT_DONE);
	json_object_set_new(root, "rules", rows);
	return md_stats_json_print(root);
}

int md_morph_watch(struct md_stats *stats, int argc, char **argv)
{
	struct watch w = {.stats = stats, .what = calloc((size_t)argc + 1, sizeof(char *))};
	struct mp_err err = {0};
	int r;

	if (!w.what)
		return md_stats_fail("out of memory");
	/* In order, so that what stands behind -- stays apart from the programs. */
	mp_args_parse(&argp, argc, argv, ARGP_IN_ORDER, &w);
	mp_stdio_parsed();
	if (w.policy_dir)
		r = snprintf(w.dir, sizeof(w.dir), "%s", w.policy_dir) >= (int)sizeof(w.dir)
			    ? md_stats_fail("the path of the policy is too long")
			    : 0;
	else
		r = md_policy_default_dir(w.dir, sizeof(w.dir), &err) ? md_stats_fail("%s", err.msg)
								      : 0;
	if (!r)
		r = !strcmp(w.action, "add")  ? add(&w)
		    : !strcmp(w.action, "rm") ? rm(&w)
					      : list(&w);
	free(w.what);
	return r;
}
