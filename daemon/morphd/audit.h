// SPDX-License-Identifier: Apache-2.0
/*
 * audit - the option --audit of `morphd run`: audits a program while it runs, beside sampling or
 * without. Called by run.
 */
#ifndef MD_AUDIT_H
#define MD_AUDIT_H

#include "daemon/audit/audit_reader.h"
#include "daemon/morphd/options.h"

/*
 * md_audit_finish - ends the audit, stores it in @store (NULL: nowhere), and says what came of it.
 * @db: path of the database. Accepts NULL for @reader. Return: 0; -ENODATA: nothing was audited;
 * -errno of the store. Frees @reader.
 */
int md_audit_finish(struct md_audit_reader *reader, struct mp_store *store, const char *db,
		    struct mp_err *err);
/* Audits without sampling, until SIGINT or SIGTERM. Return: 0 or -errno. */
int md_audit_main(const struct md_options *o, struct mp_err *err);

#endif
