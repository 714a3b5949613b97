// SPDX-License-Identifier: Apache-2.0
/*
 * morph_watch - the command "watch": adds, removes and lists the rules that say which programs Morph
 * looks after by itself. A rule is a file of watch.d (policy.h); an administrator may edit it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/rule_file.h"
#include "daemon/morph/units.h"
#include "daemon/policy/deny.h"
#include "daemon/policy/policy.h"
#include "libprof/base/defaults.h"
#include "libprof/base/text.h"

#define MP_OPTIONS struct watch

struct watch {
	struct md_cli *cli;
	const char *action, *name, *policy_dir;
	char **what; /* arguments behind the action */
	int nr_what;
	int mode; /* index in modes */
	struct md_rule_text rule;
	char dir[PATH_MAX];
};

static const char *const modes[] = {"", "adopt", "advise", NULL};

static const struct mp_option options[] = {
	MP_WORD("mode", mode, modes, "MODE",
		"adopt: put a version in place that an audit found faster; advise: only say that there is one "
		"(default: as morph.conf says)"),
	MP_VALUE(TEXT, "name", 0, name, "NAME",
		 "Name of the rule (default: that of the first program)"),
	MP_VALUE(TEXT, "unit", 0, rule.unit, "UNIT",
		 "Restart this service after its program was replaced"),
	MP_VALUE(TEXT, "user", 0, rule.user, "USER", "Run COMMAND as this user"),
	MP_VALUE(TEXT, "policy", 0, policy_dir, "DIR", "The directory with morph.conf and watch.d"),
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct watch *w = options;

	/* Behind -- stands the command that trains and audits. */
	if (w->action && state->quoted && state->next > state->quoted) {
		w->rule.command = state->argv + state->next - 1;
		w->rule.nr_command = state->argc - state->next + 1;
		state->next = state->argc;
	} else if (!w->action) {
		w->action = arg;
	} else {
		w->what[w->nr_what++] = arg;
	}
}

static void check(void *options, struct argp_state *state)
{
	struct watch *w = options;

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
		argp_error(state, "--name=%s: not letters, digits, '.', '_' and '-'", w->name);
	if (w->rule.command && strcmp(w->action, "add") != 0)
		argp_error(state, "only add takes a command");
}

static const struct mp_usage usage = {
	.options = options,
	.arguments = "add|rm|list [PROGRAM...] [-- COMMAND...]",
	.word = take_word,
	.check = check,
	.doc = "Look after programs from now on: each is optimised when the machine is idle and there is "
	       "something to gain.\v"
	       "PROGRAM is a path, a command, a package (package:NAME), a build-id, or a pattern such as "
	       "'/opt/db/bin/*'. COMMAND uses the program: it trains it, and audits compare both versions "
	       "with it. rm takes the name of a rule, too.",
	.shared = &md_cli_common_argp,
	.in_order = true}; /* what stands behind -- stays apart from the programs */

/* ---- names -------------------------------------------------------------------------------------- */

/* "package:NAME" and patterns stay as they are; other names become paths. */
static int resolve(const struct md_machine *machine, const char *what, struct md_program *out)
{
	const struct md_policy none_said = {.dir = ""};
	char why[256];
	int r;

	*out = (struct md_program){0};
	if (!strncmp(what, "package:", 8) || (what[0] == '/' && strpbrk(what, "*?["))) {
		out->path = strdup(what);
		return out->path ? 0 : md_cli_fail("out of memory");
	}
	if (what[strspn(what, "0123456789.")] == '%') {
		md_cli_fail("%s: a share of the machine is a setting of morph.conf: share = %s",
			    what, what);
		return MP_EXIT_USAGE;
	}
	r = md_morph_find(machine, what, out);
	if (!r && md_deny_path(&none_said, out->path, why, sizeof(why))) {
		md_cli_fail("%s: %s", out->path, why);
		return MP_EXIT_REFUSED;
	}
	return r;
}

/* ---- actions ------------------------------------------------------------------------------------ */

static json_t *action_json(const struct watch *w, const char *file)
{
	json_t *root = md_cli_json_new("watch"), *programs = json_array();

	for (size_t i = 0; i < w->rule.nr_programs; i++)
		json_array_append_new(programs, mp_json_string(w->rule.programs[i]));
	json_object_set_new(root, "action", json_string(w->action));
	json_object_set_new(root, "file", mp_json_string(file));
	json_object_set_new(root, "programs", programs);
	return root;
}

/* A rule of the machine's policy is the word that lets the worker begin by itself. */
static enum md_units start_worker(const struct watch *w)
{
	enum md_units units = w->policy_dir ? MD_UNITS_NONE : md_units_enable(false);

	if (units == MD_UNITS_FAILED)
		md_cli_note("morph-optimize.timer is not enabled, so nothing begins by itself");
	return units;
}

/* Only a version that was found faster is adopted. A COMMAND finds out, or everyday use, where the policy allows it. */
static int check_adopt(const struct watch *w)
{
	struct md_policy policy;
	struct mp_err err = {0};
	bool decides = !md_policy_read(w->dir, &policy, &err) && policy.counting;

	md_policy_fini(&policy);
	if (w->rule.command || strcmp(modes[w->mode], "adopt") != 0 || decides)
		return 0;
	md_cli_fail(
		"--mode=adopt: what was not found faster is never adopted, and a COMMAND that uses the "
		"program is needed to find out; give it behind --, or let everyday use decide: morph on");
	return MP_EXIT_USAGE;
}

static int write_rule(struct watch *w)
{
	enum md_units units;
	struct md_policy policy;
	struct mp_err err = {0};
	char name[128], file[MP_PATH_ROOM];
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
		md_cli_fail("%s", err.msg);
		return r == -EEXIST || r == -EINVAL ? MP_EXIT_USAGE : MP_EXIT_FAILED;
	}
	units = start_worker(w);
	if (w->cli->json)
		return md_cli_json_print(action_json(w, file));
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
	return md_cli_finish(MP_EXIT_DONE);
}

static int add(struct watch *w)
{
	struct md_program *programs = calloc((size_t)w->nr_what, sizeof(*programs));
	const char **paths = calloc((size_t)w->nr_what, sizeof(*paths));
	struct md_machine machine;
	int r = programs && paths ? 0 : md_cli_fail("out of memory");

	md_morph_load_quietly(w->cli, &machine);
	for (int i = 0; i < w->nr_what && !r; i++) {
		r = resolve(&machine, w->what[i], &programs[i]);
		if (!r)
			paths[i] = programs[i].path;
	}
	w->rule.programs = paths;
	w->rule.nr_programs = (size_t)w->nr_what;
	if (!r)
		r = check_adopt(w);
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
			r = md_cli_fail("%s", err.msg);
		else if (!w->cli->json) {
			mp_text_put(stdout, policy->rules[i].file);
			puts(" is removed.");
		}
	}
	md_program_fini(&program);
	if (!nr)
		return md_cli_fail("%s: no rule names it", what);
	return r;
}

static int read_policy(struct watch *w, struct md_policy *policy)
{
	struct mp_err err = {0};

	return md_policy_read(w->dir, policy, &err) ? md_cli_fail("%s", err.msg) : 0;
}

static int rm(struct watch *w)
{
	struct md_policy policy = {0};
	struct md_machine machine;
	int r = read_policy(w, &policy);

	md_morph_load_quietly(w->cli, &machine);
	for (int i = 0; i < w->nr_what && !r; i++)
		r = remove_one(w, &policy, &machine, w->what[i]);
	if (!r && w->cli->json) {
		w->rule.programs = (const char **)w->what;
		w->rule.nr_programs = (size_t)w->nr_what;
		r = md_cli_json_print(action_json(w, w->dir));
	}
	md_machine_fini(&machine);
	md_policy_fini(&policy);
	return r ? r : md_cli_finish(MP_EXIT_DONE);
}

static json_t *strings_json(char *const *list)
{
	json_t *array = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(array, mp_json_string(list[i]));
	return array;
}

static int list(struct watch *w)
{
	struct md_policy policy = {0};
	json_t *root = NULL, *rows = NULL;
	int r = read_policy(w, &policy);

	if (!r && w->cli->json) {
		root = md_cli_json_new("rules");
		rows = json_array();
		json_object_set_new(root, "share_percent", json_real(100 * policy.share));
	} else if (!r && policy.share > 0) {
		printf("Programs above %.1f %% of the machine: %s\n", 100 * policy.share,
		       md_policy_mode_name(policy.mode));
	}
	for (size_t i = 0; i < policy.nr_rules && !r; i++) {
		const struct md_rule *rule = &policy.rules[i];
		const char *mode = md_policy_mode_name(md_policy_mode_of(&policy, rule));

		if (rows) {
			json_array_append_new(
				rows, json_pack("{s:o, s:o, s:o, s:o, s:s, s:s}", "name",
						mp_json_string(rule->name), "file",
						mp_json_string(rule->file), "programs",
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
		return r ? r : md_cli_finish(MP_EXIT_DONE);
	json_object_set_new(root, "rules", rows);
	return md_cli_json_print(root);
}

int md_morph_watch(struct md_cli *cli, int argc, char **argv)
{
	struct watch w = {.cli = cli, .what = calloc((size_t)argc + 1, sizeof(char *))};
	int r;

	if (!w.what)
		return md_cli_fail("out of memory");
	md_cli_parse(&usage, argc, argv, &w, cli);
	w.rule.mode = w.mode ? modes[w.mode] : NULL;
	r = md_morph_policy_dir(w.policy_dir, w.dir, sizeof(w.dir));
	if (!r)
		r = !strcmp(w.action, "add")  ? add(&w)
		    : !strcmp(w.action, "rm") ? rm(&w)
					      : list(&w);
	free(w.what);
	return r;
}
