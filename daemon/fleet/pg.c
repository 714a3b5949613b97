// SPDX-License-Identifier: Apache-2.0
/* pg - see pg.h. */
#include "daemon/fleet/pg.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/module/sandbox.h"
#include "libprof/base/clock.h"

/*
 * Most seconds to wait for the whole answer to a statement, or for the next row where rows come one by one. The slowest statement of a large fleet takes
 * some minutes. A host whose server says nothing has to undo builds whose lease is over.
 */
#define ANSWER_S 1800
/* A server may answer with more than was asked for: libpq may take so much memory for an answer, in bytes. */
#define ANSWER_MAX (UINT64_C(256) << 20)

/* ---- failures ------------------------------------------------------------------------------ */

/* libpq's messages have several lines. The first one says what is wrong. */
static int fail_with(int code, const char *what, const char *reason, struct mp_err *err)
{
	int len = (int)strcspn(reason, "\n");

	return mp_err_set(err, code, "cannot %s: %.*s", what, len, reason);
}

/* @result may be NULL. */
static int fail(PGconn *conn, const PGresult *result, const char *what, struct mp_err *err)
{
	static const struct {
		const char *sqlstate; /* begins so */
		int code;
	} codes[] = {
		{"MF001", EEXIST}, {"MF003", EINVAL}, {"MF004", EAGAIN}, {"MF005", EDQUOT},
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

/* Drops the notices that a server sends besides its answers. */
static void ignore_notice(void *arg, const PGresult *result)
{
	(void)arg;
	(void)result;
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
	PQsetNoticeReceiver(conn, ignore_notice, NULL);
	/*
	 * The planner cannot know how many hosts a module has. Where it has no statistics (new
	 * tables, foreign ones), it takes one, and would compare each row with each host.
	 * Compiling these queries takes longer than running them.
	 */
	md_pg_run(conn, "set up the connection", NULL, NULL,
		  "SET enable_nestloop = off; SET jit = off; SET work_mem = '32MB'", NULL);
	*out = conn;
	return 0;
}

/* ---- parameters ---------------------------------------------------------------------------- */

static void add(struct md_pg_params *p, const char *types, va_list args)
{
	for (; *types; types++, p->nr++) {
		char *number = p->numbers[p->nr];
		const size_t room = sizeof(p->numbers[0]);

		p->values[p->nr] = number;
		p->formats[p->nr] = *types == 'b';
		if (*types == 't' || *types == 'b')
			p->values[p->nr] = va_arg(args, const char *);
		if (*types == 'b')
			p->lengths[p->nr] = (int)va_arg(args, size_t);
		else if (*types == 'i')
			snprintf(number, room, "%" PRId64, va_arg(args, int64_t));
		else if (*types == 'd')
			snprintf(number, room, "%.17g", va_arg(args, double));
		else if (*types == 'y')
			snprintf(number, room, "%s", va_arg(args, int) ? "t" : "f");
	}
}

void md_pg_add(struct md_pg_params *p, const char *types, ...)
{
	va_list args;

	va_start(args, types);
	add(p, types, args);
	va_end(args);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Bytes of this process's private memory that it can write; 0: not known. */
static uint64_t data_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Return: whether memory is limited, and @was is to be set again. */
static bool limit_memory(struct rlimit *was)
{
	uint64_t most = data_bytes() + ANSWER_MAX;
	struct rlimit limit;

	if (most == ANSWER_MAX || !md_sandbox_limits_memory() || getrlimit(RLIMIT_DATA, was) ||
	    was->rlim_cur <= most)
		return false;
	limit = (struct rlimit){.rlim_cur = most, .rlim_max = was->rlim_max};
	return !setrlimit(RLIMIT_DATA, &limit);
}

/* Ends the connection: each use of it fails from now on. */
static void drop(PGconn *conn)
{
	shutdown(PQsocket(conn), SHUT_RDWR);
	while (PQconsumeInput(conn))
		;
}

/* Waits until @until, of mp_now_s(), for a result. A server that gives none loses the connection. */
static void wait_for_result(PGconn *conn, double until)
{
	struct rlimit was;
	bool limited = limit_memory(&was);
	int more;

	while ((more = PQflush(conn)) > 0 || (!more && PQisBusy(conn))) {
		struct pollfd p = {.fd = PQsocket(conn),
				   .events = (short)(more ? POLLIN | POLLOUT : POLLIN)};

		/* Bytes that TLS has read already do not show at the socket. */
		if ((poll(&p, 1, 100) < 0 && errno != EINTR) || mp_now_s() >= until ||
		    !PQconsumeInput(conn)) {
			drop(conn);
			break;
		}
	}
	if (limited)
		setrlimit(RLIMIT_DATA, &was);
}

/* Return: as PQgetResult(). No statement here copies, and libpq would give that result again and again. */
static PGresult *next_result(PGconn *conn, double until)
{
	PGresult *result;

	if (PQflush(conn) || PQisBusy(conn))
		wait_for_result(conn, until);
	result = PQgetResult(conn);
	switch (PQresultStatus(result)) {
	case PGRES_COPY_IN:
	case PGRES_COPY_OUT:
	case PGRES_COPY_BOTH: drop(conn); break;
	default: break;
	}
	return result;
}

/* Return: the last result of a statement; NULL: none came. */
static PGresult *last_result(PGconn *conn)
{
	double until = mp_now_s() + ANSWER_S;
	PGresult *last = NULL, *result;

	while (PQstatus(conn) == CONNECTION_OK && (result = next_result(conn, until))) {
		PQclear(last);
		last = result;
		if (mp_now_s() >= until)
			drop(conn);
	}
	return last;
}

/* ---- statements ---------------------------------------------------------------------------- */

/* @binary: the result has binary values. Return: false: the connection is lost. */
static bool start(PGconn *conn, const char *sql, const struct md_pg_params *p, bool binary)
{
	return !PQsetnonblocking(conn, 1) &&
	       (p ? PQsendQueryParams(conn, sql, p->nr, NULL, p->values, p->lengths, p->formats,
				      binary)
		  : PQsendQuery(conn, sql));
}

int md_pg_run_with(PGconn *conn, const char *what, PGresult **out, struct mp_err *err,
		   const char *sql, const struct md_pg_params *p)
{
	PGresult *result = start(conn, sql, p, false) ? last_result(conn) : NULL;
	ExecStatusType status = PQresultStatus(result);
	int r = 0;

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		r = fail(conn, result, what, err);
	if (r || !out)
		PQclear(result);
	if (out)
		*out = r ? NULL : result;
	return r;
}

static int run(PGconn *conn, const char *what, PGresult **out, struct mp_err *err, const char *sql,
	       const char *types, va_list args)
{
	struct md_pg_params p = {0};

	if (types)
		add(&p, types, args);
	return md_pg_run_with(conn, what, out, err, sql, types ? &p : NULL);
}

int md_pg_run(PGconn *conn, const char *what, PGresult **out, struct mp_err *err, const char *sql,
	      const char *types, ...)
{
	va_list args;
	int r;

	va_start(args, types);
	r = run(conn, what, out, err, sql, types, args);
	va_end(args);
	return r;
}

const char *md_pg_text(const PGresult *result, int column)
{
	const char *text = PQgetvalue(result, 0, column);

	return text ? text : "";
}

int md_pg_ask(PGconn *conn, const char *what, bool *yes, struct mp_err *err, const char *sql,
	      const char *types, ...)
{
	PGresult *result;
	va_list args;
	int r;

	va_start(args, types);
	r = run(conn, what, &result, err, sql, types, args);
	va_end(args);
	*yes = !r && !strcmp(md_pg_text(result, 0), "t");
	PQclear(result);
	return r;
}

int md_pg_rows(PGconn *conn, const char *what, json_t **out, struct mp_err *err, const char *sql,
	       const char *types, ...)
{
	PGresult *result;
	char *wrapped;
	va_list args;
	int r;

	*out = NULL;
	if (asprintf(&wrapped, "SELECT coalesce(json_agg(r), '[]'::json)::text FROM (%s) r", sql) <
	    0)
		return mp_err_set(err, ENOMEM, "out of memory");
	va_start(args, types);
	r = run(conn, what, &result, err, wrapped, types, args);
	va_end(args);
	free(wrapped);
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

int md_pg_transaction(PGconn *conn, int (*step)(PGconn *conn, void *arg, struct mp_err *err),
		      void *arg, const char *what, struct mp_err *err)
{
	int r = md_pg_run(conn, what, NULL, err, "BEGIN", NULL);

	if (r)
		return r;
	r = step(conn, arg, err);
	if (!r)
		return md_pg_run(conn, what, NULL, err, "COMMIT", NULL);
	return md_pg_run(conn, what, NULL, NULL, "ROLLBACK", NULL) ? -ENOTCONN : r;
}

/* ---- many rows ----------------------------------------------------------------------------- */

int md_pg_send(PGconn *conn, const char *what, struct mp_err *err, const char *sql,
	       const char *types, ...)
{
	struct md_pg_params p = {0};
	va_list args;

	va_start(args, types);
	add(&p, types, args);
	va_end(args);
	if (start(conn, sql, &p, true) && PQsetSingleRowMode(conn))
		return 0;
	return fail(conn, NULL, what, err);
}

int md_pg_next(PGconn *conn, const char *what, PGresult **out, struct mp_err *err)
{
	PGresult *result = next_result(conn, mp_now_s() + ANSWER_S);
	int r = 0;

	if (PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
		*out = result;
		return 1;
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		r = fail(conn, result, what, err);
	PQclear(result);
	PQclear(last_result(conn));
	return r;
}

bool md_pg_number(const PGresult *result, int column, int size, int64_t *out)
{
	const char *data = md_pg_text(result, column);
	uint64_t bits = size && data[0] & 0x80 ? UINT64_MAX : 0;

	if (PQgetisnull(result, 0, column) || PQgetlength(result, 0, column) != size)
		return false;
	for (int i = 0; i < size; i++)
		bits = bits << 8 | (uint8_t)data[i];
	*out = (int64_t)bits;
	return true;
}
