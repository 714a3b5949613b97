// SPDX-License-Identifier: Apache-2.0
/*
 * server_json - rows of the database as JSON objects, for commands that print them, and for the report. The
 * server may say anything: what is missing or of another type reads as zero or "".
 */
#ifndef MD_FLEET_SERVER_JSON_H
#define MD_FLEET_SERVER_JSON_H

#include <jansson.h>
#include <libpq-fe.h>

#include "libprof/base/err.h"

/*
 * md_fleet_rows - the rows of @query, with @params as text: a list of objects by columns' names.
 * Ownership: json_decref(*@out). Return: 0, -EPROTO, as md_fleet_fail().
 */
int md_fleet_rows(PGconn *conn, const char *query, int nr_params, const char *const *params,
		  const char *what, json_t **out, struct mp_err *err);

static inline const char *md_row_text(const json_t *row, const char *column)
{
	const char *text = json_string_value(json_object_get(row, column));

	return text ? text : "";
}

static inline double md_row_number(const json_t *row, const char *column)
{
	return json_number_value(json_object_get(row, column));
}

#endif
