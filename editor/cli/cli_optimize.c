// SPDX-License-Identifier: Apache-2.0
/*
 * cli_optimize - `morph-optimize FILE': write a faster version of a file, or replace the file by
 * this version.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/cli.h"
#include "editor/object/object.h"
#include "editor/base/output_name.h"
#include "editor/print/print.h"
#include "libprof/cli/commands.h"

enum key {
	KEY_IN_PLACE = 0x300,
	KEY_BACKUP_DIR,
	KEY_BREAK_LINKS,
	KEY_DEBUG_FILE,
	KEY_DEBUG_OUTPUT,
	KEY_PRINT,
	KEY_PRINT_FORMAT,
	KEY_MARKERS,
	KEY_AUDITED,
	KEY_PROGRAM,
	KEY_PLAN,
	KEY_SAVE_PLAN,
};

static const struct argp_option options[] = {
	{"in-place", KEY_IN_PLACE, NULL, 0,
	 "Replace FILE, and keep the original in the backup directory", 0},
	{"backup-dir", KEY_BACKUP_DIR, "DIR", 0,
	 "Where originals are kept (default: see FILES in the man page)", 0},
	{"break-links", KEY_BREAK_LINKS, NULL, 0,
	 "Replace FILE even if another name in its directory (a hard link) keeps the old bytes", 0},
	{"debug-file", KEY_DEBUG_FILE, "PATH|auto", 0,
	 "The debug information of FILE is in this file (auto: where a debugger looks, if "
	 "anywhere); write one for the output, too",
	 0},
	{"debug-output", KEY_DEBUG_OUTPUT, "PATH", 0,
	 "Where to write that (default: the output's name with .debug; not with --in-place)", 0},
	{"markers", KEY_MARKERS, "keep|remove", 0,
	 "remove: leave out of copies what only serves code markers of morph_marker.so or "
	 "morph_marker.h (default: keep)",
	 0},
	{"audited", KEY_AUDITED, "DB", 0,
	 "Give each function the order of its blocks that won in audits inside the running program "
	 "(morphd run --audit), by the store DB: the original's, or the new one where that won or "
	 "nothing is decided",
	 1},
	{"program", KEY_PROGRAM, "PROGRAM", 0,
	 "FILE is a relocatable object or an archive: take the profile of PROGRAM, which was linked "
	 "from it",
	 1},
	{"plan", KEY_PLAN, "FILE", 0,
	 "Use no profile: do what this plan says, which --save-plan wrote for the same file, here or "
	 "elsewhere",
	 1},
	{"save-plan", KEY_SAVE_PLAN, "FILE", 0,
	 "Write the plan of the output here: with it, the same Morph makes the same output without the "
	 "profile",
	 1},
	{"print", KEY_PRINT, "WHAT[:FUNCTION,...]", 0,
	 "Print what was computed instead of the report: cfg, counts, plan or place; of these "
	 "functions only, which are named as with --only",
	 2},
	{"print-format", KEY_PRINT_FORMAT, "FORMAT", 0, "text (default) or dot, for Graphviz", 2},
	{0}};

struct optimize {
	struct me_cli *cli;
	struct me_inplace_options inplace;
	struct me_print_options print;
	const char *program;
	enum me_object_kind kind;	 /* of the input */
	struct me_layout_options layout; /* without options */
	bool in_place, printing;
};

/* Options that say nothing about objects, or that objects need. */
static void check_object(struct argp_state *state, const struct optimize *a)
{
	const struct me_optimize_options *o = &a->cli->options;

	if (a->kind == ME_OBJECT_NONE && a->program)
		argp_error(state, "--program: FILE is no relocatable object, and no archive");
	if (a->kind == ME_OBJECT_NONE)
		return;
	if (!a->program)
		argp_error(state, "a relocatable object or an archive needs --program=PROGRAM, a "
				  "program that was linked from it and has a profile");
	if (!o->output && !a->cli->dry_run)
		argp_error(state, "a relocatable object or an archive needs -o FILE");
	if (a->in_place || o->debug_file || o->audited_db || o->remove_markers || a->printing ||
	    a->cli->patch_list || o->plan || o->save_plan || o->nr_adjusts || o->adjust_words.nr ||
	    o->explain)
		argp_error(state, "for relocatable objects and archives there is only the profile, "
				  "--layout, --skip and --only");
}

/* A plan has decided what these options decide. */
static void check_plan(struct argp_state *state, const struct optimize *a)
{
	const struct me_optimize_options *o = &a->cli->options;

	if (o->plan && (o->db || a->cli->fleet || o->since_s || o->stale.from || o->exact_profile ||
			o->all || o->stress_inline || o->audited_db || o->remove_markers ||
			o->skip.given || o->only.given || o->adjust_words.nr ||
			memcmp(&o->layout, &a->layout, sizeof(o->layout)) != 0))
		argp_error(state, "--plan says what moves: it goes neither with a profile nor with "
				  "another choice of functions or layout");
	if (o->save_plan && (o->remove_markers || o->stress_inline))
		argp_error(state, "--save-plan does not go with --markers=remove or stress-inline");
}

static void check(struct argp_state *state, const struct optimize *a)
{
	const struct me_cli *cli = a->cli;
	const struct me_optimize_options *o = &cli->options;

	if (!o->input)
		argp_error(state, "which file?");
	if (o->counting.none)
		argp_error(state, "--lab=kind=none: see `instrument'");
	if (o->output && (a->in_place || cli->dry_run))
		argp_error(state, "-o and --in-place exclude each other, and --dry-run goes with "
				  "--in-place alone");
	if ((a->inplace.backup_dir || a->inplace.break_links) && !a->in_place)
		argp_error(state, "--backup-dir and --break-links need --in-place");
	if (a->inplace.backup_dir && !*a->inplace.backup_dir)
		argp_error(state, "--backup-dir: which directory?");
	if (o->debug_output && !o->debug_file)
		argp_error(state, "--debug-output needs --debug-file");
	if (o->debug_output && a->in_place)
		argp_error(state, "--debug-output: with --in-place the debug file's name is the "
				  "build-id");
	if (o->debug_output && o->output && !strcmp(o->debug_output, o->output))
		argp_error(state, "--debug-output: is the output itself");
	check_plan(state, a);
	if (a->print.dot && !a->printing)
		argp_error(state, "--print-format needs --print");
	if (a->printing && cli->json)
		argp_error(state, "--print does not go with --json");
	if (a->print.on[ME_PRINT_COUNTS] && o->all)
		argp_error(state, "--print=counts needs a profile, which --all does without");
}

/* Without -o the output lies beside the input. */
static void choose_output(struct argp_state *state, struct me_cli *cli)
{
	struct mp_err err = {""};

	if (me_output_name(cli->options.input, cli->output, sizeof(cli->output), &err))
		argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
	cli->options.output = cli->output;
	cli->default_output = true;
}

static void read_print(struct argp_state *state, struct optimize *a, const char *arg)
{
	struct mp_err err = {""};

	if (me_print_parse(&a->print, arg, &err))
		argp_error(state, "--print: %s", err.msg);
	a->printing = true;
}

static void read_format(struct argp_state *state, struct optimize *a, const char *arg)
{
	a->print.dot = !strcmp(arg, "dot");
	if (!a->print.dot && strcmp(arg, "text"))
		argp_error(state, "--print-format: '%s' is not text or dot", arg);
}

static void read_markers(struct argp_state *state, struct me_cli *cli, const char *arg)
{
	cli->options.remove_markers = !strcmp(arg, "remove");
	if (!cli->options.remove_markers && strcmp(arg, "keep"))
		argp_error(state, "--markers: '%s' is not keep or remove", arg);
}

static void read_file(struct argp_state *state, struct me_cli *cli, char *arg)
{
	if (cli->options.input) {
		if (mp_commands_find(&me_cli_commands, cli->options.input))
			argp_error(state, "a command comes first: morph-optimize %s ...",
				   cli->options.input);
		argp_error(state, "one file at a time");
	}
	cli->options.input = arg;
}

static const struct argp_child children[] = {{&me_cli_output_argp, 0, NULL, 0},
					     {&me_cli_report_argp, 0, NULL, 0},
					     {&me_cli_profile_argp, 0, NULL, 0},
					     {&me_cli_functions_argp, 0, NULL, 0},
					     {&me_cli_adjust_argp, 0, NULL, 0},
					     {&me_cli_layout_argp, 0, NULL, 0},
					     {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct optimize *a = state->input;
	struct me_cli *cli = a->cli;
	struct mp_err err = {""};

	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; children[i].argp; i++)
			state->child_inputs[i] = cli;
		return 0;
	case KEY_IN_PLACE: a->in_place = true; return 0;
	case KEY_BACKUP_DIR: a->inplace.backup_dir = arg; return 0;
	case KEY_BREAK_LINKS: a->inplace.break_links = true; return 0;
	case KEY_DEBUG_FILE: cli->options.debug_file = arg; return 0;
	case KEY_DEBUG_OUTPUT: cli->options.debug_output = arg; return 0;
	case KEY_AUDITED:
		cli->options.audited_db = arg;
		/* The audited version kept its calls, so no audit tested what replaces them. */
		cli->options.layout.slots = cli->options.layout.inline_leaves = false;
		return 0;
	case KEY_PROGRAM: a->program = arg; return 0;
	case KEY_PLAN: cli->options.plan = arg; return 0;
	case KEY_SAVE_PLAN: cli->options.save_plan = arg; return 0;
	case KEY_PRINT: read_print(state, a, arg); return 0;
	case KEY_MARKERS: read_markers(state, cli, arg); return 0;
	case KEY_PRINT_FORMAT: read_format(state, a, arg); return 0;
	case ARGP_KEY_ARG: read_file(state, cli, arg); return 0;
	case ARGP_KEY_END:
		check(state, a);
		cli->options.all |= cli->options.plan != NULL;
		if (me_object_kind(cli->options.input, &a->kind, &err))
			argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
		check_object(state, a);
		if (!cli->options.output && !cli->dry_run && !a->in_place)
			choose_output(state, cli);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Write a faster version of an executable or shared object: hot code, as sampled, is "
	       "copied into one dense segment with its likely paths straightened. The output is "
	       "FILE.morph where neither -o nor --in-place says otherwise. With --program, FILE is "
	       "a relocatable object or an archive, whose functions are rewritten.\v"
	       "`morph-optimize COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, "
	       "3 no or too little profile, 4 refused as unsafe; of train also 5 not faster, 6 "
	       "output differs, 7 undecided (the new version is OUTPUT.undecided).",
	.children = children,
	.help_filter = mp_commands_help,
};

int me_cli_optimize(struct me_cli *cli, int argc, char **argv)
{
	struct optimize a = {.cli = cli, .layout = cli->options.layout};
	int status;

	me_cli_parse(&argp, cli, argc, argv, &a);
	if (a.kind != ME_OBJECT_NONE)
		return me_cli_object(cli, a.program);
	a.inplace.dry_run = cli->dry_run;
	if (a.printing) {
		a.print.out = stdout;
		cli->options.print = &a.print;
	}
	status = me_cli_work(cli, a.in_place ? &a.inplace : NULL);
	me_print_fini(&a.print);
	return status;
}
