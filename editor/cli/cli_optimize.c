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
#include "editor/base/output_name.h"
#include "editor/print/print.h"
#include "libprof/cli/commands.h"

#define MP_OPTIONS struct me_cli

/* Options that say nothing about objects, or that objects need. */
static void check_object(struct argp_state *state, const struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;

	if (cli->kind == ME_OBJECT_NONE && cli->program)
		argp_error(state, "--program: FILE is no relocatable object, and no archive");
	if (cli->kind == ME_OBJECT_NONE)
		return;
	if (!cli->program)
		argp_error(state, "a relocatable object or an archive needs --program=PROGRAM, a "
				  "program that was linked from it and has a profile");
	if (!o->output && !cli->dry_run)
		argp_error(state, "a relocatable object or an archive needs -o FILE");
	if (cli->in_place || o->debug_file || o->audited_db || o->remove_markers || cli->printing ||
	    cli->patch_list || o->live_at || o->plan || o->save_plan || o->nr_adjusts ||
	    o->adjust_words.nr || o->explain)
		argp_error(state, "for relocatable objects and archives there is only the profile, "
				  "--layout, --skip and --only");
}

/* A plan has decided what these options decide. */
static void check_plan(struct argp_state *state, const struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;

	if (o->plan && (o->db || cli->fleet || o->since_s || o->stale.from || o->exact_profile ||
			o->all || o->stress_inline || o->audited_db || o->remove_markers ||
			o->skip.given || o->only.given || o->adjust_words.nr ||
			memcmp(&o->layout, &cli->layout, sizeof(o->layout)) != 0))
		argp_error(state, "--plan says what moves: it goes neither with a profile nor with "
				  "another choice of functions or layout");
	if (o->save_plan && (o->remove_markers || o->stress_inline))
		argp_error(state, "--save-plan does not go with --markers=remove or stress-inline");
}

static void check_options(struct argp_state *state, const struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;

	if (!o->input)
		argp_error(state, "which file?");
	if (o->counting.none)
		argp_error(state, "--lab=kind=none: see `instrument'");
	if (o->output && (cli->in_place || cli->dry_run))
		argp_error(state, "-o and --in-place exclude each other, and --dry-run goes with "
				  "--in-place alone");
	if (o->live_at && (cli->in_place || o->layout.huge_pages || o->remove_markers))
		argp_error(state, "--live-at goes neither with --in-place nor with huge-pages or "
				  "--markers=remove");
	if ((cli->inplace.backup_dir || cli->inplace.break_links) && !cli->in_place)
		argp_error(state, "--backup-dir and --break-links need --in-place");
	if (cli->inplace.backup_dir && !*cli->inplace.backup_dir)
		argp_error(state, "--backup-dir: which directory?");
	if (o->debug_output && !o->debug_file)
		argp_error(state, "--debug-output needs --debug-file");
	if (o->debug_output && cli->in_place)
		argp_error(state, "--debug-output: with --in-place the debug file's name is the "
				  "build-id");
	if (o->debug_output && o->output && !strcmp(o->debug_output, o->output))
		argp_error(state, "--debug-output: is the output itself");
	check_plan(state, cli);
	if (cli->print.dot && !cli->printing)
		argp_error(state, "--print-format needs --print");
	if (cli->printing && cli->json)
		argp_error(state, "--print does not go with --json");
	if (cli->print.on[ME_PRINT_COUNTS] && o->all)
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

static void set_print(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;
	struct mp_err err = {""};

	if (me_print_parse(&cli->print, arg, &err))
		argp_error(state, "--%s: %s", o->name, err.msg);
	cli->printing = true;
}

static void set_format(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_cli *cli = options;

	cli->print.dot = !strcmp(arg, "dot");
	if (!cli->print.dot && strcmp(arg, "text"))
		argp_error(state, "--%s: '%s' is not text or dot", o->name, arg);
}

static void set_markers(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_cli *cli = options;

	cli->options.remove_markers = !strcmp(arg, "remove");
	if (!cli->options.remove_markers && strcmp(arg, "keep"))
		argp_error(state, "--%s: '%s' is not keep or remove", o->name, arg);
}

static void set_audited(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_cli *cli = options;

	(void)o, (void)state;
	cli->options.audited_db = arg;
	/* The audited version kept its calls, so no audit tested what replaces them. */
	cli->options.layout.slots = cli->options.layout.inline_leaves = false;
}

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->options.input) {
		if (mp_commands_find(&me_cli_commands, cli->options.input))
			argp_error(state, "a command comes first: morph-optimize %s ...",
				   cli->options.input);
		argp_error(state, "one file at a time");
	}
	cli->options.input = arg;
}

static const struct mp_option options[] = {
	MP_FLAG("in-place", in_place,
		"Replace FILE, and keep the original in the backup directory"),
	MP_VALUE(TEXT, "backup-dir", 0, inplace.backup_dir, "DIR",
		 "Where originals are kept (default: see FILES in the man page)"),
	MP_FLAG("break-links", inplace.break_links,
		"Replace FILE even if another name in its directory (a hard link) keeps the old bytes"),
	MP_VALUE(TEXT, "debug-file", 0, options.debug_file, "PATH|auto",
		 "The debug information of FILE is in this file (auto: where a debugger looks, if "
		 "anywhere); write one for the output, too"),
	MP_VALUE(
		TEXT, "debug-output", 0, options.debug_output, "PATH",
		"Where to write that (default: the output's name with .debug; not with --in-place)"),
	MP_SET("markers", 0, set_markers, "keep|remove",
	       "remove: leave out of copies what only serves code markers of morph_marker.so or "
	       "morph_marker.h (default: keep)"),
	MP_SET("audited", 0, set_audited, "DB",
	       "Give each function the order of its blocks that won in audits inside the running program "
	       "(morphd run --audit), by the store DB: the original's, or the new one where that won or "
	       "nothing is decided"),
	MP_VALUE(TEXT, "program", 0, program, "PROGRAM",
		 "FILE is a relocatable object or an archive: take the profile of PROGRAM, which was linked "
		 "from it"),
	MP_VALUE(TEXT, "plan", 0, options.plan, "FILE",
		 "Use no profile: do what this plan says, which --save-plan wrote for the same file, here or "
		 "elsewhere"),
	MP_VALUE(TEXT, "save-plan", 0, options.save_plan, "FILE",
		 "Write the plan of the output here: with it, the same Morph makes the same output without the "
		 "profile"),
	MP_SET("print", 0, set_print, "WHAT[:FUNCTION,...]",
	       "Print what was computed instead of the report: cfg, counts, plan or place; of these "
	       "functions only, which are named as with --only"),
	MP_SET("print-format", 0, set_format, "FORMAT", "text (default) or dot, for Graphviz"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	struct me_cli *cli = options;
	struct mp_err err = {""};

	me_cli_check_profile(state, cli);
	check_options(state, cli);
	cli->options.all |= cli->options.plan != NULL;
	if (me_object_kind(cli->options.input, &cli->kind, &err))
		argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
	check_object(state, cli);
	if (!cli->options.output && !cli->dry_run && !cli->in_place)
		choose_output(state, cli);
}

static const struct mp_option *const more[] = {me_cli_output_options,
					       me_cli_report_options,
					       me_cli_profile_options,
					       me_cli_functions_options,
					       me_cli_adjust_options,
					       me_cli_layout_options,
					       NULL};

static const struct mp_usage usage = {
	.options = options,
	.more = more,
	.arguments = "FILE",
	.word = take_word,
	.check = check,
	.help_filter = mp_commands_help,
	.doc = "Write a faster version of an executable or shared object: hot code, as sampled, is "
	       "copied into one dense segment with its likely paths straightened. The output is "
	       "FILE.morph where neither -o nor --in-place says otherwise. With --program, FILE is "
	       "a relocatable object or an archive, whose functions are rewritten.\v"
	       "`morph-optimize COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, "
	       "3 no or too little profile, 4 refused as unsafe; of train also 5 not faster, 6 "
	       "output differs, 7 undecided (the new version is OUTPUT.undecided)."};

void me_cli_parse_optimize(struct me_cli *cli, int argc, char **argv)
{
	cli->layout = cli->options.layout;
	me_cli_parse(&usage, cli, argc, argv);
}

int me_cli_optimize(struct me_cli *cli, int argc, char **argv)
{
	int status;

	me_cli_parse_optimize(cli, argc, argv);
	if (cli->kind != ME_OBJECT_NONE)
		return me_cli_object(cli, cli->program);
	cli->inplace.dry_run = cli->dry_run;
	if (cli->printing) {
		cli->print.out = stdout;
		cli->options.print = &cli->print;
	}
	status = me_cli_work(cli, cli->in_place ? &cli->inplace : NULL);
	me_print_fini(&cli->print);
	return status;
}
