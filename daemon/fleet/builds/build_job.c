// SPDX-License-Identifier: Apache-2.0
/* build_job - see build_job.h. */
#include "daemon/fleet/builds/build_job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/pg_params.h"
#include "daemon/worker/child.h"

#define LONGEST_WAIT_S 30
/* A message of a failed program may hold anything. */
#define DETAIL_MAX 1000

static void add_job(struct md_pg_params *p, const struct md_builder *b,
		    const struct md_build_job *job)
{
	md_pg_add_bytes(p, MD_PG_BYTEA, job->module, job->module_size);
	md_pg_add_bytes(p, MD_PG_TEXT, job->options, strlen(job->options));
	md_pg_add_bytes(p, MD_PG_TEXT, b->version, strlen(b->version));
	md_pg_add_number(p, MD_PG_INT8, job->lease);
}

/* Printable ASCII, and not too long. */
static size_t clean(const char *text, char out[DETAIL_MAX])
{
	size_t n = 0;

	for (; *text && n < DETAIL_MAX; text++)
		out[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
	return n;
}

/* Runs @sql until the server answers or the time is over. Each statement may be repeated. */
static int run(struct md_builder *b, const char *sql, const struct md_pg_params *p,
	       const char *what, PGresult **out, struct mp_err *err)
{
	time_t until = time(NULL) + (time_t)b->give_up_s;
	unsigned int wait_s = 1;
	int r;

	while ((r = md_pg_run(b->conn, sql, p, what, out, err)) == -ENOTCONN &&
	       time(NULL) < until && !md_child_is_stopped()) {
		sleep(wait_s);
		wait_s = wait_s * 2 < LONGEST_WAIT_S ? wait_s * 2 : LONGEST_WAIT_S;
		PQreset(b->conn);
	}
	return r;
}

/* @sql says whether the job was still this builder's. */
static int run_owned(struct md_builder *b, const char *sql, const struct md_pg_params *p,
		     const char *what, struct mp_err *err)
{
	PGresult *result;
	bool owned;
	int r = run(b, sql, p, what, &result, err);

	if (r)
		return r;
	owned = PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 1 &&
		*PQgetvalue(result, 0, 0);
	PQclear(result);
	return owned ? 0
		     : mp_err_set(err, ESTALE, "cannot %s: another builder has the job now", what);
}

/* The server's answer is checked like a file. */
static int read_job(const PGresult *result, struct md_build_job *job, struct mp_err *err)
{
	int size = PQgetlength(result, 0, 0), options = PQgetlength(result, 0, 1);

	if (PQnfields(result) != 4 || options > MD_BUILD_OPTIONS_MAX ||
	    md_module_of_key((const uint8_t *)PQgetvalue(result, 0, 0), (size_t)size, &job->id) ||
	    PQgetlength(result, 0, 2) != 8 || PQgetlength(result, 0, 3) != 8)
		return mp_err_set(err, EPROTO, "the server gives a damaged job");
	memcpy(job->module, PQgetvalue(result, 0, 0), (size_t)size);
	job->module_size = (size_t)size;
	memcpy(job->options, PQgetvalue(result, 0, 1), (size_t)options);
	job->options[options] = '\0';
	job->lease = md_pg_get(PQgetvalue(result, 0, 2), 8);
	job->lease_s = md_pg_get(PQgetvalue(result, 0, 3), 8);
	return 0;
}

int md_build_job_take(struct md_builder *b, struct md_build_job *job, struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	*job = (struct md_build_job){.renewed = time(NULL)};
	md_pg_add_bytes(&p, MD_PG_TEXT, b->version, strlen(b->version));
	r = run(b, "SELECT module, options, lease, lease_seconds FROM fleet.take_build($1)", &p,
		"take a job", &result, err);
	if (r)
		return r;
	r = PQntuples(result) == 1 ? read_job(result, job, err)
				   : mp_err_set(err, ENOENT, "no build is asked for");
	PQclear(result);
	return r;
}

bool md_build_job_renew(struct md_builder *b, struct md_build_job *job)
{
	struct md_pg_params p = {0};
	struct mp_err ignored;
	PGresult *result;
	bool owned = true;

	if (time(NULL) - job->renewed < job->lease_s / 4)
		return true;
	job->renewed = time(NULL);
	add_job(&p, b, job);
	if (PQstatus(b->conn) != CONNECTION_OK)
		PQreset(b->conn);
	if (md_pg_run(b->conn, "SELECT fleet.renew_build($1, $2, $3, $4)", &p, "renew a lease",
		      &result, &ignored))
		return true;
	if (PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 1)
		owned = *PQgetvalue(result, 0, 0);
	PQclear(result);
	return owned;
}

int md_build_job_finish(struct md_builder *b, const struct md_build_job *job,
			const struct md_build_result *result, struct mp_err *err)
{
	uint8_t output[MD_MODULE_KEY_MAX];
	struct md_pg_params p = {0};
	char detail[DETAIL_MAX];

	add_job(&p, b, job);
	md_pg_add_bytes(&p, MD_PG_BYTEA, output, md_module_key(&result->id, output));
	md_pg_add_bytes(&p, MD_PG_BYTEA, result->output->hash, MD_SHA256_SIZE);
	md_pg_add_bytes(&p, MD_PG_BYTEA, result->plan->bytes, result->plan->size);
	md_pg_add_bytes(&p, MD_PG_TEXT, detail, clean(result->detail, detail));
	return run_owned(b, "SELECT fleet.finish_build($1, $2, $3, $4, $5, $6, $7, $8)", &p,
			 "store the build", err);
}

int md_build_job_fail(struct md_builder *b, const struct md_build_job *job, bool again,
		      const char *why, struct mp_err *err)
{
	struct md_pg_params p = {0};
	char detail[DETAIL_MAX], yes = again;

	add_job(&p, b, job);
	md_pg_add_bytes(&p, MD_PG_BOOL, &yes, 1);
	md_pg_add_bytes(&p, MD_PG_TEXT, detail, clean(why, detail));
	return run_owned(b, "SELECT fleet.fail_build($1, $2, $3, $4, $5, $6)", &p,
			 "give the job back", err);
}

int md_build_job_lack(struct md_builder *b, const struct md_build_job *job, const char *why,
		      struct mp_err *err)
{
	struct md_pg_params p = {0};
	char detail[DETAIL_MAX];

	add_job(&p, b, job);
	md_pg_add_bytes(&p, MD_PG_TEXT, detail, clean(why, detail));
	return run_owned(b, "SELECT fleet.lack_build($1, $2, $3, $4, $5)", &p, "give the job up",
			 err);
}
