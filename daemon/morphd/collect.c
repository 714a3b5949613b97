// SPDX-License-Identifier: Apache-2.0
/* collect - from an open source to the last flush; see collect.h. */
#include "daemon/morphd/collect.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/module/modread.h"
#include "daemon/module/sandbox.h"
#include "daemon/morphd/message.h"
#include "daemon/morphd/totals.h"
#include "libprof/base/text.h"

/* Time to read one file. A large file on a slow disk takes seconds. */
#define READ_DEADLINE_MS 10000

static void report(const struct md_pipeline *pl, const char *db, const char *record)
{
	fprintf(stderr, "morphd: captured %" PRIu64 " samples of %zu modules, %" PRIu64 " lost -> ",
		pl->total.emitted - md_ledger_lost(&pl->total), md_pipeline_nr_modules(pl),
		md_ledger_lost(&pl->total));
	mp_text_put(stderr, db);
	if (db[0] && record)
		fputs(", ", stderr);
	mp_text_put(stderr, record ? record : "");
	fputc('\n', stderr);
}

/*
 * A live source's files are read in a sandbox. root must have one, else morphd does not start.
 * For an ordinary user, whose own files are no more dangerous here than elsewhere, it is
 * optional.
 */
static int open_sandbox(struct md_pipeline *pl, struct mp_err *unconfined, struct mp_err *err)
{
	const struct md_sandbox_config config = {
		.deadline_ms = READ_DEADLINE_MS,
		.reply_max = MD_MODREAD_REPLY_MAX,
		.name = pl->source->has_stacks ? MD_SANDBOX_ROWS : MD_SANDBOX_MODULES,
	};
	int ret;

	if (!pl->source->ops->is_live)
		return 0;
	ret = md_sandbox_open(&config, &pl->sandbox, unconfined);
	if (!ret)
		return 0;
	if (md_sandbox_is_needed())
		return mp_err_set(err, -ret, "no sandbox for reading files: %s", unconfined->msg);
	fprintf(stderr, "morphd: files are read without a sandbox: %s\n", unconfined->msg);
	pl->unconfined = unconfined->msg;
	return 0;
}

int md_collect(const struct md_options *o, struct md_pipeline *pl, const struct md_database *db,
	       int (*work)(struct md_pipeline *pl, struct mp_err *err), struct mp_err *err)
{
	struct mp_err unconfined = {{0}};
	struct md_recfile_info info;
	const char *remark;
	int ret, close_ret;

	pl->store = db->store;
	md_source_describe(pl->source, &info);
	ret = open_sandbox(pl, &unconfined, err);
	if (!ret && o->record)
		ret = md_recwriter_open(o->record, &info, &pl->writer, err);
	if (!ret)
		ret = md_pipeline_init(pl, err);
	if (!ret) {
		ret = work(pl, err);
		remark = pl->source ? pl->source->ops->remark(pl->source) : NULL;
		if (remark)
			md_message(remark);
		if (!ret && o->stats)
			ret = md_totals_print(pl, o->json, o->is_run ? "run" : "collect", err);
	}
	close_ret = md_recwriter_close(pl->writer, ret ? NULL : err);
	pl->writer = NULL;
	if (!ret)
		ret = close_ret;
	if (!ret)
		report(pl, db->path, o->record);
	md_pipeline_fini(pl);
	md_sandbox_close(pl->sandbox);
	return ret;
}
