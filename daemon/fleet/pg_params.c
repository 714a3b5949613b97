// SPDX-License-Identifier: Apache-2.0
/* pg_params - see pg_params.h. */
#include "daemon/fleet/pg_params.h"

#include <errno.h>
#include <string.h>

#include "daemon/fleet/server.h"

void md_pg_add_bytes(struct md_pg_params *p, enum md_pg_type type, const void *data, size_t size)
{
	p->types[p->nr] = type;
	p->values[p->nr] = data;
	p->lengths[p->nr] = (int)size;
	p->formats[p->nr++] = 1;
}

void md_pg_add_number(struct md_pg_params *p, enum md_pg_type type, int64_t value)
{
	size_t size = type == MD_PG_INT2 ? 2 : type == MD_PG_INT4 ? 4 : 8;

	md_pg_put(p->numbers[p->nr], value, size);
	md_pg_add_bytes(p, type, p->numbers[p->nr], size);
}

void md_pg_add_float(struct md_pg_params *p, double value)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	md_pg_put(p->numbers[p->nr], bits, 8);
	md_pg_add_bytes(p, MD_PG_FLOAT8, p->numbers[p->nr], 8);
}

int md_pg_add_array(struct md_pg_params *p, enum md_pg_type type, const struct md_pg_array *array,
		    struct mp_err *err)
{
	if (array->failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	md_pg_add_bytes(p, type, array->bytes, array->size);
	return 0;
}

/* Today's quota is used up: waiting some seconds does not help. */
static int fail(PGconn *conn, const PGresult *result, const char *what, struct mp_err *err)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	int r = md_fleet_fail(conn, result, what, err);

	return r == -EAGAIN && state && !strcmp(state, "MF005") ? -EDQUOT : r;
}

int md_pg_run(PGconn *conn, const char *sql, const struct md_pg_params *p, const char *what,
	      PGresult **out, struct mp_err *err)
{
	PGresult *result = PQexecParams(conn, sql, p ? p->nr : 0, p ? p->types : NULL,
					p ? p->values : NULL, p ? p->lengths : NULL,
					p ? p->formats : NULL, 1);
	ExecStatusType status = PQresultStatus(result);
	int r = 0;

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		r = fail(conn, result, what, err);
	if (!r && out)
		*out = result;
	else
		PQclear(result);
	return r;
}

int md_pg_send(PGconn *conn, const char *sql, const struct md_pg_params *p, const char *what,
	       struct mp_err *err)
{
	if (PQsendQueryParams(conn, sql, p->nr, p->types, p->values, p->lengths, p->formats, 1) &&
	    PQsetSingleRowMode(conn))
		return 0;
	return fail(conn, NULL, what, err);
}

int md_pg_next(PGconn *conn, const char *what, PGresult **out, struct mp_err *err)
{
	PGresult *result = PQgetResult(conn), *more;
	int r = 0;

	if (PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
		*out = result;
		return 1;
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		r = fail(conn, result, what, err);
	PQclear(result);
	while ((more = PQgetResult(conn)))
		PQclear(more);
	return r;
}
