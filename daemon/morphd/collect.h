// SPDX-License-Identifier: Apache-2.0
/*
 * collect - runs the pipeline with its sandbox, recording and database. Called by service and
 * run.
 */
#ifndef MD_COLLECT_H
#define MD_COLLECT_H

#include "daemon/attribute/pipeline.h"
#include "daemon/morphd/database.h"
#include "daemon/morphd/options.h"

/*
 * Does everything between opening the source and the last flush. @work: runs the pipeline, with
 * pl->arg. The caller closes pl->source, which @work may have replaced.
 */
int md_collect(const struct md_options *o, struct md_pipeline *pl, const struct md_database *db,
	       int (*work)(struct md_pipeline *pl, struct mp_err *err), struct mp_err *err);

#endif
