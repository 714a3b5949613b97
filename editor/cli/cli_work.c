// SPDX-License-Identifier: Apache-2.0
/*
 * cli_work - runs the editor on one file and prints the report: for `morph-optimize FILE' and for
 * `morph-optimize instrument'.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/cli/advice.h"
#include "editor/cli/cli.h"
#include "editor/base/output_name.h"
#include "editor/cli/report.h"
#include "editor/emit/publish.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/fleet_tool.h"
#include "libprof/cli/progress.h"
#include "libprof/store/store.h"

static int list_patches(const char *path, const struct me_patches *patches, struct mp_err *err)
{
	struct mp_outfile out;
	int rc = mp_outfile_open(path, NULL, &out, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < patches->nr_patches; i++)
		fprintf(out.file, "%#" PRIx64 " %" PRIu32 "\n", (uint64_t)patches->patches[i].vaddr,
			(uint32_t)patches->patches[i].size);
	return mp_outfile_commit(&out, err);
}

int me_cli_check_output(const struct me_cli *cli, const char *output, const char *other,
			struct mp_err *err)
{
	const struct me_optimize_options *o = &cli->options;
	const char *named[] = {o->input,	  o->db, o->debug_file, o->audited_db, o->plan,
			       o->counting.meter, other};
	const char *inputs[sizeof(named) / sizeof(named[0]) + 1] = {NULL};
	size_t nr = 0;

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (named[i])
			inputs[nr++] = named[i];
	return mp_outfile_check(output, inputs, err);
}

/* No output replaces an input, or the other output. */
static int check_outputs(const struct me_cli *cli, struct mp_err *err)
{
	const struct me_optimize_options *o = &cli->options;
	int rc = o->output ? me_publish_check(o->input, o->output, err) : 0;

	if (!rc)
		rc = me_cli_check_output(cli, o->output, NULL, err);
	if (!rc)
		rc = me_cli_check_output(cli, o->debug_output, NULL, err);
	if (!rc && o->save_plan)
		rc = me_cli_check_output(cli, o->save_plan, o->output, err);
	return rc ? rc : me_cli_check_output(cli, cli->patch_list, o->output, err);
}

static void say_stage(enum me_stage stage)
{
	static const char *const texts[ME_NR_STAGES] = {
		[ME_STAGE_READ] = "reading the file",
		[ME_STAGE_PROFILE] = "reading the profile",
		[ME_STAGE_INFER] = "inferring counts",
		[ME_STAGE_LAYOUT] = "laying out",
		[ME_STAGE_EMIT] = "making the new code",
		[ME_STAGE_DEBUG] = "debug information",
		[ME_STAGE_WRITE] = "writing",
		[ME_STAGE_VERIFY] = "verifying",
	};

	mp_progress_say("%s", texts[stage]);
}

/* The fleet's profile of the input, in a temporary database. */
static int pull(struct me_cli *cli, struct mp_err *err)
{
	const char *const arguments[] = {"--", cli->options.input, NULL};

	if (!cli->options.input)
		return mp_err_set(err, EINVAL, "--fleet: no file is named");
	cli->options.db = cli->db;
	return mp_fleet_tool_pull(cli->fleet, arguments, cli->db, sizeof(cli->db), err);
}

int me_cli_choose_db(struct me_cli *cli, struct mp_err *err)
{
	struct me_optimize_options *o = &cli->options;
	int rc;

	if (cli->fleet)
		return pull(cli, err);

	/* To instrument a file needs no profile: without one, all functions are copied. */
	o->all |= me_counting_any(&o->counting) && !o->db;
	if (o->db || o->all)
		return 0;
	rc = mp_store_default_path(cli->db, sizeof(cli->db), false, err);
	if (rc)
		return rc;
	/* As in morph-stats: a user without a database reads the service's. */
	if (!getenv("MORPH_DB") && access(cli->db, F_OK) && !access(MP_STORE_SERVICE_PATH, R_OK))
		strcpy(cli->db, MP_STORE_SERVICE_PATH);
	o->db = cli->db;
	return 0;
}

static int print_report(const struct me_cli *cli, const struct me_optimize_report *report,
			const char *named_db, bool done)
{
	const struct me_optimize_options *o = &cli->options;
	int failed = 0;

	if (cli->json)
		failed = me_report_json(stdout, o, report);
	else
		me_report_text(stdout, o, report);
	if (done && !cli->json && o->output && !o->live_at && !me_counting_any(&o->counting))
		me_advice_next(stdout, o, named_db, report);
	return me_cli_flush(failed);
}

int me_cli_prepare(struct me_cli *cli, struct mp_err *err)
{
	struct me_optimize_options *o = &cli->options;
	int rc = 0;

	if (cli->default_output)
		rc = me_output_replaceable(o->output, err) ? -EEXIST : 0;
	if (!rc)
		rc = me_cli_choose_db(cli, err);
	if (!rc) {
		rc = check_outputs(cli, err);
		if (rc && cli->fleet)
			mp_fleet_tool_remove(o->db);
	}
	return rc;
}

int me_cli_work(struct me_cli *cli, const struct me_inplace_options *inplace)
{
	struct me_optimize_options *o = &cli->options;
	const char *named_db = o->db;
	struct me_inplace_report done = {0};
	struct me_optimize_report report = {0};
	struct mp_err err = {""};
	int rc = me_cli_prepare(cli, &err), failed = 0;

	if (rc) {
		/* Without a message morph-fleet has said why. */
		if (err.msg[0])
			me_cli_complain(&err);
		return me_cli_exit_status(rc);
	}
	if (mp_progress_start("morph-optimize", true)) {
		o->progress = say_stage;
		say_stage(ME_STAGE_READ);
	}
	rc = inplace ? me_inplace(o, inplace, &report, &done, &err) : me_optimize(o, &report, &err);
	mp_progress_stop();
	if (rc)
		me_cli_complain(&err);
	/*
	 * With @audited_db, -ENODATA may also mean that the audit is missing: then no function is
	 * decided, since the audit is read before the profile.
	 */
	if (rc == -ENODATA && !report.nothing_to_move && (!o->audited_db || report.nr_decided) &&
	    !cli->quiet && !cli->json)
		me_advice_collect(stderr, o, named_db, &report);
	if (!rc && cli->patch_list) {
		rc = list_patches(cli->patch_list, &report.emitted.patches, &err);
		if (rc)
			me_cli_complain(&err);
	}
	if (o->print)
		failed = me_cli_flush(0);
	else if ((!rc || report.nothing_to_move) && !cli->quiet)
		failed = print_report(cli, &report, named_db, !rc);
	if (cli->fleet)
		mp_fleet_tool_remove(o->db);
	me_inplace_report_fini(&done);
	me_optimize_report_fini(&report);
	me_words_fini(&o->skip);
	me_words_fini(&o->only);
	me_words_fini(&o->adjust_words);
	return me_cli_exit_status(rc ? rc : failed);
}
