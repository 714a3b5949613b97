// SPDX-License-Identifier: Apache-2.0
/*
 * pg - a connection to the fleet's database, statements on it, and what their failures mean. Called by all files of
 * fleet/.
 *
 * A statement's @types has one letter for each of its parameters, which follow:
 *	t	text: const char *
 *	b	bytes: const void *, size_t
 *	i	a number: int64_t
 *	d	a number: double
 *	y	yes or no: bool
 * NULL for a text or for bytes is the value NULL. @types NULL: @sql is several statements, without parameters.
 * Values are never part of @sql. @what is for the message "cannot WHAT: REASON".
 */
#ifndef MD_FLEET_PG_H
#define MD_FLEET_PG_H

#include <jansson.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

/*
 * md_fleet_connect - connects with libpq's @conninfo, a string or URI. Refuses a connection by network
 * without TLS. Ownership: PQfinish(*@out). Return: 0, -ECONNREFUSED, -EPERM (no TLS), -ENOMEM.
 */
int md_fleet_connect(const char *conninfo, PGconn **out, struct mp_err *err);

/*
 * md_pg_run - runs a statement, whose result is text. @out may be NULL. Ownership: PQclear(*@out). Return: 0; -EACCES (a
 * right is missing, or the host is banned); -ENOTCONN (the connection is lost); -EAGAIN (lock or serialisation: later);
 * -EDQUOT (no more today); -EEXIST (the epoch was continued elsewhere); -EINVAL (refused as damaged); -EPROTO (the schema
 * is another one); -EIO.
 */
int md_pg_run(PGconn *conn, const char *what, PGresult **out, struct mp_err *err, const char *sql,
	      const char *types, ...);
/* *@yes: the first column of the first row, a boolean. */
int md_pg_ask(PGconn *conn, const char *what, bool *yes, struct mp_err *err, const char *sql,
	      const char *types, ...);
/*
 * md_pg_rows - the rows of a query as a list of JSON objects by columns' names. Columns of bytes read as md_hex_read()
 * takes them. The server may say anything: what is missing or of another type reads as zero or "" with the functions
 * below. Ownership: json_decref(*@out). Return: 0, -EPROTO, as md_pg_run().
 */
int md_pg_rows(PGconn *conn, const char *what, json_t **out, struct mp_err *err, const char *sql,
	       const char *types, ...);
/* Runs the statements in a transaction: @step is called in it. Return: 0, as @step and md_pg_run(). */
int md_pg_transaction(PGconn *conn, int (*step)(PGconn *conn, void *arg, struct mp_err *err),
		      void *arg, const char *what, struct mp_err *err);

static inline const char *md_row_text(const json_t *row, const char *column)
{
	const char *text = json_string_value(json_object_get(row, column));

	return text ? text : "";
}

static inline double md_row_number(const json_t *row, const char *column)
{
	return json_number_value(json_object_get(row, column));
}

/* A value of row 0 as text. Return: "" where the server gave no such row or column, too. Valid like @result. */
const char *md_pg_text(const PGresult *result, int column);

/* ---- many parameters, many rows ------------------------------------------------------------ */

#define MD_PG_PARAMS_MAX 16

/* The parameters of one statement, in order. Starts as zeros. Texts and bytes stay the caller's. */
struct md_pg_params {
	int nr, lengths[MD_PG_PARAMS_MAX], formats[MD_PG_PARAMS_MAX];
	const char *values[MD_PG_PARAMS_MAX];
	char numbers[MD_PG_PARAMS_MAX][32];
};

void md_pg_add(struct md_pg_params *p, const char *types, ...);
/* As md_pg_run(); @p NULL: several statements. */
int md_pg_run_with(PGconn *conn, const char *what, PGresult **out, struct mp_err *err,
		   const char *sql, const struct md_pg_params *p);
/* Starts a query whose result, with binary values, is read row by row. */
int md_pg_send(PGconn *conn, const char *what, struct mp_err *err, const char *sql,
	       const char *types, ...);
/*
 * The next row, in a result of one row. Return: 1: a row, and PQclear(*@out); 0: the end; as md_pg_run(). After another
 * value than 1 the connection takes the next statement.
 */
int md_pg_next(PGconn *conn, const char *what, PGresult **out, struct mp_err *err);
/* A binary number of @size bytes in row 0. Return: false: the column has another type, or is NULL. */
bool md_pg_number(const PGresult *result, int column, int size, int64_t *out);

#endif
