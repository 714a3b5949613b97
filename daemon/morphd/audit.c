// SPDX-License-Identifier: Apache-2.0
/* audit - the option --audit of `morphd run`; see audit.h. */
#include "daemon/morphd/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "daemon/attribute/pipeline.h"
#include "daemon/morphd/database.h"
#include "daemon/morphd/message.h"
#include "daemon/morphd/signals.h"
#include "libprof/base/clock.h"

static void report(const struct md_audit_totals *t, const char *db)
{
	fprintf(stderr,
		"morphd: audited %" PRIu32 " functions: the new order is faster in %" PRIu32
		", the original's in %" PRIu32 ", undecided %" PRIu32 "; %" PRIu64
		" pairs of windows, %" PRIu64 " dropped%s%s\n",
		t->nr_functions, t->nr_b, t->nr_a, t->nr_functions - t->nr_a - t->nr_b, t->pairs,
		t->dropped, *db ? " -> " : "", db);
}

int md_audit_finish(struct md_audit_reader *reader, struct mp_store *store, const char *db,
		    struct mp_err *err)
{
	struct md_audit_totals totals;
	const char *remark;
	int ret;

	if (!reader)
		return 0;
	md_audit_reader_end(reader);
	ret = md_audit_reader_save(reader, store, err);
	remark = md_audit_reader_remark(reader);
	md_audit_reader_totals(reader, &totals);
	if (!ret && !totals.nr_functions)
		ret = mp_err_set(err, ENODATA, "%s", remark);
	else if (remark)
		md_message(remark);
	if (!ret)
		report(&totals, store ? db : "");
	md_audit_reader_free(reader);
	return ret;
}

static int wait_for_end(const struct md_options *o, struct md_audit_reader *reader,
			struct mp_store *store, struct mp_err *err)
{
	static const struct timespec pause = {0, 100000000};
	int64_t saved_ns = mp_clock_ns(CLOCK_MONOTONIC);
	int ret = 0;

	while (!md_stop_requested && !ret) {
		nanosleep(&pause, NULL);
		if (mp_clock_ns(CLOCK_MONOTONIC) - saved_ns < (int64_t)(o->line.interval_s * 1e9))
			continue;
		saved_ns = mp_clock_ns(CLOCK_MONOTONIC);
		ret = md_audit_reader_save(reader, store, err);
		if (ret && md_pipeline_is_temporary(ret)) {
			/* The next time, all of it is stored. */
			md_message(err->msg);
			ret = 0;
		}
	}
	return ret;
}

int md_audit_main(const struct md_options *o, struct mp_err *err)
{
	struct md_audit_reader *reader = NULL;
	struct md_database db = {.lock.fd = -1};
	int ret;

	md_signals_catch();
	ret = md_database_open(o, &o->line, &db, err);
	if (!ret)
		ret = md_audit_reader_start(&o->audit, &reader, err);
	if (!ret)
		ret = wait_for_end(o, reader, db.store, err);
	if (!ret)
		ret = md_audit_finish(reader, db.store, db.path, err);
	else
		md_audit_reader_free(reader);
	md_database_close(&db);
	return ret;
}
