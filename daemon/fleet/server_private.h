// SPDX-License-Identifier: Apache-2.0
/* server_private - the files of sql/ and statements, shared by the files of the server. */
#ifndef MD_FLEET_SERVER_PRIVATE_H
#define MD_FLEET_SERVER_PRIVATE_H

#include <stddef.h>

#include "daemon/fleet/server.h"

/* One file of sql/. */
struct md_fleet_sql {
	const char *name; /* without ".sql" */
	const char *text; /* ends with a zero byte */
	size_t size;	  /* without that byte */
};

/* The numbered files, in their order. Return: file @i, from 0; NULL: there are no more. */
const struct md_fleet_sql *md_fleet_migration(int i);
/* Return: the file's number, from 1. */
int md_fleet_migration_number(const struct md_fleet_sql *sql);
/* Another file, by its name. */
const struct md_fleet_sql *md_fleet_sql_find(const char *name);

/*
 * Runs @sql, or several statements if there are no @params, which are text. Ownership: PQclear(*@out);
 * @out may be NULL. Return: 0, as md_fleet_fail().
 */
int md_fleet_run(PGconn *conn, const char *sql, int nr_params, const char *const *params,
		 const char *what, PGresult **out, struct mp_err *err);
/* *@yes: the first column of the first row, a boolean. */
int md_fleet_ask(PGconn *conn, const char *sql, int nr_params, const char *const *params,
		 const char *what, bool *yes, struct mp_err *err);
/* *@same: the migration was applied as it stands here; *@there: it was applied. */
int md_fleet_migration_state(PGconn *conn, const struct md_fleet_sql *sql, bool *there, bool *same,
			     struct mp_err *err);
/* *@newest: the highest number that was applied; 0: there is no schema. */
int md_fleet_newest_migration(PGconn *conn, int *newest, struct mp_err *err);

#endif
