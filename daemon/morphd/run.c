// SPDX-License-Identifier: Apache-2.0
/* run - the command `morphd run`; see run.h. */
#include "daemon/morphd/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/attribute/sample_owner.h"
#include "daemon/morphd/audit.h"
#include "daemon/morphd/collect.h"
#include "daemon/morphd/command.h"
#include "daemon/morphd/message.h"
#include "daemon/morphd/signals.h"
#include "daemon/morphd/source_open.h"
#include "libprof/base/defaults.h"

#define SELECT_RATE_HZ 1000 /* on every CPU, of which most samples are dropped */

struct run {
	struct md_command command;
	const char *name;
	const struct md_path_requests_config *polls; /* without a path: no polling */
	const struct md_options *o;
	const struct md_pipeline *pl;
	const char *db;
	struct md_audit_reader *audit; /* NULL: no audit */
};

static bool run_should_stop(void *arg)
{
	struct run *run = arg;

	if (run->name)
		return md_command_has_ended(&run->command);
	return md_stop_requested ||
	       (run->o->selection.nr_pids && !run->o->selection.nr_units &&
		!run->o->selection.nr_uids && !md_sample_owner_any_alive(run->pl->flush.owner));
}

/* A failure is reported now; the end stores all of the audit again. */
static void run_flushed(void *arg)
{
	struct run *run = arg;
	struct mp_err err = {{0}};

	if (run->audit && md_audit_reader_save(run->audit, run->pl->store, &err))
		md_message(err.msg);
}

static int run_work(struct md_pipeline *pl, struct mp_err *err)
{
	struct run *run = pl->arg;
	int ret = run->polls->path ? md_path_requests_start(run->polls, &pl->polls, err) : 0;
	const char *remark;

	if (!ret && run->o->calls.path)
		ret = md_call_samples_start(&run->o->calls, &pl->calls, err);
	if (!ret && run->o->audit.path)
		ret = md_audit_reader_start(&run->o->audit, &run->audit, err);
	if (!ret && run->name)
		ret = md_command_go(&run->command, run->name, err);
	if (!ret)
		ret = md_pipeline_run(pl, err);
	remark = !ret && pl->polls ? md_path_requests_remark(pl->polls) : NULL;
	if (remark)
		md_message(remark);
	md_path_requests_stop(pl->polls);
	pl->polls = NULL;
	remark = !ret && pl->calls ? md_call_samples_remark(pl->calls) : NULL;
	if (remark)
		md_message(remark);
	md_call_samples_stop(pl->calls);
	pl->calls = NULL;
	if (!ret)
		ret = md_audit_finish(run->audit, pl->store, run->db, err);
	else
		md_audit_reader_free(run->audit);
	run->audit = NULL;
	/* Its samples are stored all the same. */
	if (ret == -ENODATA) {
		md_message(err->msg);
		ret = 0;
	}
	return ret;
}

/* A process of --pid must exist. A unit of --unit may start later. */
static int check_pids(const struct md_options *o, struct mp_err *err)
{
	for (size_t i = 0; i < o->selection.nr_pids; i++)
		if (kill(o->pids[i], 0) && errno == ESRCH)
			return mp_err_set(err, ESRCH, "--pid %d: no such process", (int)o->pids[i]);
	return 0;
}

/* Samples the whole machine; samples that were not selected are dropped later. */
static int open_selecting(const struct md_options *o, struct md_source_config *config,
			  struct md_source **out, bool *ways, struct mp_err *err)
{
	struct mp_err inner = {{0}};
	int ret = md_source_open_for_run(o, config, out, ways, &inner);

	if (!ret)
		return 0;
	return mp_err_set(err, -ret, "--pid, --unit and --user sample the whole machine: %s",
			  inner.msg);
}

int md_run_main(const struct md_options *o, int *status, struct mp_err *err)
{
	bool selecting = md_options_select(o);
	struct md_source_config config = {
		.rate_hz = o->line.rate_hz				  ? o->line.rate_hz
			   : selecting || o->line.stacks == MD_STACKS_YES ? SELECT_RATE_HZ
									  : MP_RUN_RATE_HZ,
		.no_kernel = o->line.no_kernel,
		.registers = o->line.registers,
		.stacks = o->line.stacks,
	};
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct run run = {
		.name = o->command ? o->command[0] : NULL, .polls = &o->polls, .o = o, .pl = pl};
	struct md_database db = {.lock.fd = -1};
	int ret;

	if (o->audit.path && !run.name && !selecting) {
		free(pl);
		return md_audit_main(o, err);
	}
	ret = pl ? check_pids(o, err) : mp_err_set(err, ENOMEM, "out of memory");
	if (!ret)
		ret = md_database_open(o, &o->line, &db, err);
	if (ret)
		goto out;
	if (run.name)
		ret = md_command_start(o->command, &run.command, err);
	else
		md_signals_catch();
	if (ret)
		goto out;
	if (!selecting)
		config.command = run.command.pid;
	ret = selecting ? open_selecting(o, &config, &pl->source, &pl->wants_ways, err)
			: md_source_open_for_run(o, &config, &pl->source, &pl->wants_ways, err);
	if (!ret) {
		pl->interval_s = o->line.interval_s;
		pl->should_stop = run_should_stop;
		pl->selection = selecting ? &o->selection : NULL;
		pl->warn = md_message_warn;
		pl->flushed = run_flushed;
		pl->arg = &run;
		run.db = db.path;
		ret = md_collect(o, pl, &db, run_work, err);
	}
	if (run.name) {
		md_command_abandon(&run.command);
		*status = md_command_status(&run.command);
	}
out:
	if (pl && pl->source)
		pl->source->ops->close(pl->source);
	free(pl);
	md_database_close(&db);
	return ret;
}
