// SPDX-License-Identifier: Apache-2.0
/* server_connect - one connection to the fleet's database, and messages of failures; see server.h. */
#include "daemon/fleet/server.h"

#include <errno.h>
#include <string.h>

/* libpq's messages have several lines. The first one says what is wrong. */
static int fail_with(int code, const char *what, const char *reason, struct mp_err *err)
{
	int len = (int)strcspn(reason, "\n");

	return mp_err_set(err, code, "cannot %s: %.*s", what, len, reason);
}

int md_fleet_fail(PGconn *conn, const PGresult *result, const char *what, struct mp_err *err)
{
	static const struct {
		const char *sqlstate; /* begins so */
		int code;
	} codes[] = {
		{"MF001", EEXIST}, {"MF003", EINVAL}, {"MF004", EAGAIN}, {"MF005", EAGAIN},
		{"MF006", EACCES}, {"42501", EACCES}, {"28", EACCES},	 {"40", EAGAIN},
		{"53", EAGAIN},	   {"55P03", EAGAIN}, {"57", ENOTCONN},	 {"08", ENOTCONN},
	};
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *reason = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (PQstatus(conn) != CONNECTION_OK)
		return fail_with(ENOTCONN, what, PQerrorMessage(conn), err);
	/* No such function. */
	if (state && !strcmp(state, "42883"))
		return fail_with(EPROTO, what,
				 "the server's schema is older than this program;"
				 " an operator runs morph-fleet upgrade",
				 err);
	for (size_t i = 0; state && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (!strncmp(state, codes[i].sqlstate, strlen(codes[i].sqlstate)))
			return fail_with(codes[i].code, what, reason ? reason : state, err);
	return fail_with(EIO, what, reason ? reason : PQerrorMessage(conn), err);
}

int md_fleet_connect(const char *conninfo, PGconn **out, struct mp_err *err)
{
	PGconn *conn = PQconnectdb(conninfo);
	const char *host;
	int r;

	if (!conn)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (PQstatus(conn) != CONNECTION_OK) {
		r = fail_with(ECONNREFUSED, "connect to the fleet's database", PQerrorMessage(conn),
			      err);
		PQfinish(conn);
		return r;
	}
	host = PQhost(conn);
	if (!PQsslInUse(conn) && host && host[0] != '/' && host[0] != '@') {
		PQfinish(conn);
		return mp_err_set(err, EPERM, "%s",
				  "the fleet's server has no TLS: say sslmode=verify-full");
	}
	/*
	 * The planner cannot know how many hosts a module has. Where it has no statistics (new
	 * tables, foreign ones), it takes one, and would compare each row with each host.
	 * Compiling these queries takes longer than running them.
	 */
	PQclear(PQexec(conn, "SET enable_nestloop = off; SET jit = off; SET work_mem = '32MB'"));
	*out = conn;
	return 0;
}
