// SPDX-License-Identifier: Apache-2.0
/* server_json - see server_json.h. */
#include "daemon/fleet/server_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/fleet/server_private.h"

int md_fleet_rows(PGconn *conn, const char *query, int nr_params, const char *const *params,
		  const char *what, json_t **out, struct mp_err *err)
{
	PGresult *result = NULL;
	char *sql;
	int r;

	*out = NULL;
	if (asprintf(&sql, "SELECT coalesce(json_agg(r), '[]'::json)::text FROM (%s) r", query) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = md_fleet_run(conn, sql, nr_params, params, what, &result, err);
	free(sql);
	if (r)
		return r;
	if (PQntuples(result) == 1 && PQnfields(result) == 1)
		*out = json_loadb(PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0), 0,
				  NULL);
	PQclear(result);
	if (json_is_array(*out))
		return 0;
	json_decref(*out);
	*out = NULL;
	return mp_err_set(err, EPROTO, "cannot %s: the server gives no rows", what);
}
