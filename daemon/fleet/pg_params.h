// SPDX-License-Identifier: Apache-2.0
/* pg_params - runs statements with binary parameters and results. Called by push_send and pull. */
#ifndef MD_FLEET_PG_PARAMS_H
#define MD_FLEET_PG_PARAMS_H

#include <libpq-fe.h>

#include "daemon/fleet/pg_array.h"
#include "libprof/base/err.h"

#define MD_PG_PARAMS_MAX 16

/* The parameters of one statement, in order. Starts as zeros. Bytes stay the caller's. */
struct md_pg_params {
	int nr;
	Oid types[MD_PG_PARAMS_MAX];
	const char *values[MD_PG_PARAMS_MAX];
	int lengths[MD_PG_PARAMS_MAX], formats[MD_PG_PARAMS_MAX];
	char numbers[MD_PG_PARAMS_MAX][8];
};

void md_pg_add_bytes(struct md_pg_params *p, enum md_pg_type type, const void *data, size_t size);
/* A number of the type int2, int4, int8. */
void md_pg_add_number(struct md_pg_params *p, enum md_pg_type type, int64_t value);
void md_pg_add_float(struct md_pg_params *p, double value);
/* Return: 0, -ENOMEM: the array is not complete. */
int md_pg_add_array(struct md_pg_params *p, enum md_pg_type type, const struct md_pg_array *array,
		    struct mp_err *err);
/* Runs @sql. @p and @out may be NULL. Ownership: PQclear(*@out). Return: 0, as md_fleet_fail(), -EDQUOT. */
int md_pg_run(PGconn *conn, const char *sql, const struct md_pg_params *p, const char *what,
	      PGresult **out, struct mp_err *err);
/* The same, for a result that is read row by row. */
int md_pg_send(PGconn *conn, const char *sql, const struct md_pg_params *p, const char *what,
	       struct mp_err *err);
/*
 * The next row, in a result of one row. Return: 1: a row, and PQclear(*@out); 0: the end; as
 * md_fleet_fail(). After another value than 1 the connection takes the next statement.
 */
int md_pg_next(PGconn *conn, const char *what, PGresult **out, struct mp_err *err);

#endif
