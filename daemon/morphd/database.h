// SPDX-License-Identifier: Apache-2.0
/* database - decides which database morphd writes, and locks it. Called by service and run. */
#ifndef MD_DATABASE_H
#define MD_DATABASE_H

#include <limits.h>

#include "daemon/morphd/config.h"
#include "daemon/morphd/lock.h"
#include "daemon/morphd/options.h"
#include "libprof/store/store.h"

struct md_database {
	char path[PATH_MAX]; /* "": nothing is stored */
	struct md_lock lock;
	struct mp_store *store;
};

/* Return: 0 or -errno; in both cases the caller calls md_database_close(). */
int md_database_open(const struct md_options *o, const struct md_config *config,
		     struct md_database *db, struct mp_err *err);
/* Accepts a database that is not open, with lock.fd -1. */
void md_database_close(struct md_database *db);
/* Logs whether the last run ended properly, and what the database contains. */
int md_database_log_state(const struct md_database *db, struct mp_err *err);

#endif
