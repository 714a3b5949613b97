// SPDX-License-Identifier: Apache-2.0
/* wanted - see wanted.h. */
#include "daemon/fleet/builds/wanted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/fleet/pg_params.h"
#include "daemon/module/sandbox.h"

#define SLICE	   (UINT64_C(512) << 10)
#define NR_FIELDS  7
#define DETAIL_MAX 1000
/* Bytes of memory that this process may take while it waits for an answer. */
#define MEMORY_MAX (UINT64_C(256) << 20)

/* A server may answer with more than was asked for. libpq would take whatever memory that needs. */
static int run(PGconn *conn, const char *sql, const struct md_pg_params *p, const char *what,
	       PGresult **out, struct mp_err *err)
{
	struct rlimit was, limit;
	bool limited = md_sandbox_limits_memory() && !getrlimit(RLIMIT_DATA, &was);
	int r;

	if (limited) {
		limit = was;
		limit.rlim_cur = was.rlim_max < MEMORY_MAX ? was.rlim_max : MEMORY_MAX;
		limited = !setrlimit(RLIMIT_DATA, &limit);
	}
	r = md_pg_run(conn, sql, p, what, out, err);
	if (limited)
		setrlimit(RLIMIT_DATA, &was);
	return r;
}

/* ---- ask ----------------------------------------------------------------------------------- */

static bool take_text(const PGresult *result, int row, int field, char *out, size_t room)
{
	size_t size = (size_t)PQgetlength(result, row, field);

	if (size >= room || PQgetisnull(result, row, field))
		return false;
	memcpy(out, PQgetvalue(result, row, field), size);
	out[size] = '\0';
	return strlen(out) == size;
}

/* A size, of 8 bytes. A build without an output has none. */
static bool take_size(const PGresult *result, int row, int field, bool needed, uint64_t *out)
{
	int64_t value;

	if (PQgetisnull(result, row, field))
		return !needed;
	if (PQgetlength(result, row, field) != 8)
		return false;
	value = md_pg_get(PQgetvalue(result, row, field), 8);
	*out = (uint64_t)value;
	return value > 0;
}

static bool take_hash(const PGresult *result, int row, int field, bool needed,
		      uint8_t out[MD_SHA256_SIZE])
{
	if (PQgetisnull(result, row, field))
		return !needed;
	if (PQgetlength(result, row, field) != MD_SHA256_SIZE)
		return false;
	memcpy(out, PQgetvalue(result, row, field), MD_SHA256_SIZE);
	return true;
}

static bool take_row(const PGresult *result, int row, struct md_wanted *w)
{
	char action[16];
	bool install;

	*w = (struct md_wanted){0};
	if (!take_text(result, row, 1, action, sizeof(action)))
		return false;
	install = !strcmp(action, "install");
	w->undo = !strcmp(action, "undo");
	if (PQgetlength(result, row, 4) == 4)
		w->release = (int32_t)md_pg_get(PQgetvalue(result, row, 4), 4);
	return (install || w->undo) &&
	       !md_module_of_key((const uint8_t *)PQgetvalue(result, row, 0),
				 (size_t)PQgetlength(result, row, 0), &w->id) &&
	       take_text(result, row, 2, w->options, sizeof(w->options)) &&
	       take_text(result, row, 3, w->version, sizeof(w->version)) &&
	       take_hash(result, row, 5, install, w->output_hash) &&
	       take_size(result, row, 6, install, &w->plan_size) &&
	       w->plan_size <= MD_PLAN_SIZE_MAX;
}

int md_wanted_ask(PGconn *conn, const struct mp_id *modules, size_t nr, struct md_wanted **out,
		  size_t *nr_out, struct mp_err *err)
{
	struct md_pg_array keys = {.type = MD_PG_BYTEA};
	struct md_pg_params p = {0};
	PGresult *result = NULL;
	struct md_wanted *list = NULL;
	int r, n;

	md_pg_array_clear(&keys);
	for (size_t i = 0; i < nr; i++) {
		uint8_t key[MD_MODULE_KEY_MAX];

		md_pg_array_add(&keys, key, md_module_key(&modules[i], key));
	}
	r = md_pg_add_array(&p, MD_PG_BYTEAS, &keys, err);
	if (!r)
		r = run(conn,
			"SELECT module, action, options, version, release, output_hash, plan_size"
			" FROM fleet.wanted_builds($1)",
			&p, "ask for builds", &result, err);
	free(keys.bytes);
	if (r)
		return r;
	n = PQntuples(result);
	/* The server may say what it likes, but not more than was asked for. */
	if (PQnfields(result) != NR_FIELDS || (size_t)n > nr)
		r = mp_err_set(err, EPROTO, "the server gives a damaged list of builds");
	if (!r) {
		list = calloc((size_t)n + 1, sizeof(*list));
		if (!list)
			r = mp_err_set(err, ENOMEM, "out of memory");
	}
	for (int i = 0; i < n && !r; i++)
		if (!take_row(result, i, &list[i]))
			r = mp_err_set(err, EPROTO, "the server gives a damaged build");
	PQclear(result);
	if (r) {
		free(list);
		return r;
	}
	*out = list;
	*nr_out = (size_t)n;
	return 0;
}

/* ---- fetch --------------------------------------------------------------------------------- */

static void add_build(struct md_pg_params *p, const struct md_wanted *w,
		      uint8_t key[MD_MODULE_KEY_MAX])
{
	md_pg_add_bytes(p, MD_PG_BYTEA, key, md_module_key(&w->id, key));
	md_pg_add_bytes(p, MD_PG_TEXT, w->options, strlen(w->options));
	md_pg_add_bytes(p, MD_PG_TEXT, w->version, strlen(w->version));
	md_pg_add_number(p, MD_PG_INT4, w->release);
}

static int write_all(int fd, const char *bytes, size_t size, struct mp_err *err)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mp_err_set(err, errno, "the plan cannot be written: %s",
					  strerror(errno));
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

int md_wanted_fetch(PGconn *conn, const struct md_wanted *w, int fd, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];

	for (uint64_t done = 0; done < w->plan_size;) {
		uint64_t want = w->plan_size - done < SLICE ? w->plan_size - done : SLICE;
		struct md_pg_params p = {0};
		PGresult *result;
		int r;

		add_build(&p, w, key);
		md_pg_add_number(&p, MD_PG_INT4, (int64_t)done);
		md_pg_add_number(&p, MD_PG_INT4, (int64_t)want);
		r = run(conn, "SELECT fleet.read_plan($1, $2, $3, $4, $5, $6)", &p,
			"read the build", &result, err);
		if (r)
			return r;
		if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
			r = mp_err_set(err, ESTALE, "the build was withdrawn, or made anew");
		else if ((uint64_t)PQgetlength(result, 0, 0) != want)
			r = mp_err_set(err, EPROTO, "the build's plan has another size");
		else
			r = write_all(fd, PQgetvalue(result, 0, 0), want, err);
		PQclear(result);
		if (r)
			return r;
		done += want;
	}
	return 0;
}

int md_wanted_report(PGconn *conn, const struct md_wanted *w, const char *state, const char *detail,
		     const uint8_t *hash, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	struct md_pg_params p = {0};
	char clean[DETAIL_MAX];
	size_t size = 0;

	for (; *detail && size < sizeof(clean); detail++)
		clean[size++] = *detail >= ' ' && *detail <= '~' ? *detail : '?';
	add_build(&p, w, key);
	md_pg_add_bytes(&p, MD_PG_TEXT, state, strlen(state));
	md_pg_add_bytes(&p, MD_PG_TEXT, clean, size);
	md_pg_add_bytes(&p, MD_PG_BYTEA, hash, hash ? MD_SHA256_SIZE : 0); /* NULL: no value */
	return run(conn, "SELECT fleet.report_build($1, $2, $3, $4, $5, $6, $7)", &p,
		   "report the build", NULL, err);
}
