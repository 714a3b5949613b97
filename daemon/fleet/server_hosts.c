// SPDX-License-Identifier: Apache-2.0
/* server_hosts - what an operator does to hosts and to old rows; see server.h. Names go as parameters only. */
#include "daemon/fleet/server_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int md_fleet_enrol(PGconn *conn, const char *host, bool reads, struct mp_err *err)
{
	const char *const params[] = {host, reads ? "t" : "f"};

	return md_fleet_run(conn, "SELECT fleet.enrol($1, $2::boolean)", 2, params,
			    "enrol the host", NULL, err);
}

int md_fleet_ban(PGconn *conn, const char *host, bool banned, struct mp_err *err)
{
	const char *const params[] = {host, banned ? "t" : "f"};
	bool found;
	int r = md_fleet_ask(conn, "SELECT fleet.ban($1, $2::boolean)", 2, params, "ban the host",
			     &found, err);

	if (!r && !found)
		return mp_err_set(err, ENOENT, "%s: no such host", host);
	return r;
}

int md_fleet_forget(PGconn *conn, int before_day, int64_t *nr_rows, struct mp_err *err)
{
	char day[16];
	const char *const params[] = {day};
	PGresult *result;
	int r;

	snprintf(day, sizeof(day), "%d", before_day);
	r = md_fleet_run(conn, "SELECT fleet.forget($1::int)", 1, params, "forget old days",
			 &result, err);
	if (r)
		return r;
	*nr_rows = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return 0;
}
