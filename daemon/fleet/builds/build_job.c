// SPDX-License-Identifier: Apache-2.0
/* build_job - see build_job.h. */
#include "daemon/fleet/builds/build_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/child.h"
#include "libprof/base/text.h"

#define LONGEST_WAIT_S 30
#define DETAIL_MAX     1000

/* The parameters $1 to $4 of functions about a job. @key must stay where it is. */
static void add_job(struct md_pg_params *p, const struct md_builder *b,
		    const struct md_build_job *job, uint8_t key[MD_MODULE_KEY_MAX])
{
	md_pg_add(p, "btti", key, md_module_key(&job->id, key), job->options, b->version,
		  job->lease);
}

/* Runs @sql until the server answers or the time is over. Each statement may be repeated. */
static int run(struct md_builder *b, const char *what, PGresult **out, struct mp_err *err,
	       const char *sql, const struct md_pg_params *p)
{
	time_t until = time(NULL) + (time_t)b->give_up_s;
	unsigned int wait_s = 1;
	int r;

	while ((r = md_pg_run_with(b->conn, what, out, err, sql, p)) == -ENOTCONN &&
	       time(NULL) < until && !md_child_is_stopped()) {
		sleep(wait_s);
		wait_s = wait_s * 2 < LONGEST_WAIT_S ? wait_s * 2 : LONGEST_WAIT_S;
		PQreset(b->conn);
	}
	return r;
}

/* @sql says whether the job was still this builder's. */
static int run_owned(struct md_builder *b, const char *what, struct mp_err *err, const char *sql,
		     const struct md_pg_params *p)
{
	PGresult *result;
	bool owned;
	int r = run(b, what, &result, err, sql, p);

	if (r)
		return r;
	owned = PQntuples(result) == 1 && !strcmp(md_pg_text(result, 0), "t");
	PQclear(result);
	return owned ? 0
		     : mp_err_set(err, ESTALE, "cannot %s: another builder has the job now", what);
}

int md_build_job_take(struct md_builder *b, struct md_build_job *job, struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	*job = (struct md_build_job){.renewed = time(NULL)};
	md_pg_add(&p, "t", b->version);
	r = run(b, "take a job", &result, err,
		"SELECT module, lease, lease_seconds, options FROM fleet.take_build($1)", &p);
	if (r)
		return r;
	/* The server's answer is checked like a file. */
	if (!PQntuples(result))
		r = mp_err_set(err, ENOENT, "no build is asked for");
	else if (md_module_of_text(md_pg_text(result, 0), &job->id) ||
		 snprintf(job->options, sizeof(job->options), "%s", md_pg_text(result, 3)) >=
			 (int)sizeof(job->options))
		r = mp_err_set(err, EPROTO, "the server gives a damaged job");
	job->lease = r ? 0 : strtoll(md_pg_text(result, 1), NULL, 10);
	job->lease_s = r ? 0 : strtoll(md_pg_text(result, 2), NULL, 10);
	PQclear(result);
	return r;
}

bool md_build_job_renew(struct md_builder *b, struct md_build_job *job)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	struct mp_err ignored;
	bool owned;

	if (time(NULL) - job->renewed < job->lease_s / 4)
		return true;
	job->renewed = time(NULL);
	if (PQstatus(b->conn) != CONNECTION_OK)
		PQreset(b->conn);
	return md_pg_ask(b->conn, "renew a lease", &owned, &ignored,
			 "SELECT fleet.renew_build($1, $2, $3, $4)", "btti", key,
			 md_module_key(&job->id, key), job->options, b->version, job->lease) ||
	       owned;
}

int md_build_job_finish(struct md_builder *b, const struct md_build_job *job,
			const struct md_build_result *result, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX], output[MD_MODULE_KEY_MAX];
	char detail[DETAIL_MAX + 1];
	struct md_pg_params p = {0};

	add_job(&p, b, job, key);
	md_pg_add(&p, "bbbt", output, md_module_key(&result->id, output), result->output->hash,
		  (size_t)MD_SHA256_SIZE, result->plan->bytes, result->plan->size,
		  mp_text_escape(result->detail, detail, sizeof(detail)));
	return run_owned(b, "store the build", err,
			 "SELECT fleet.finish_build($1, $2, $3, $4, $5, $6, $7, $8)", &p);
}

int md_build_job_fail(struct md_builder *b, const struct md_build_job *job, const char *how,
		      const char *why, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	char detail[DETAIL_MAX + 1];
	struct md_pg_params p = {0};

	add_job(&p, b, job, key);
	md_pg_add(&p, "tt", how, mp_text_escape(why, detail, sizeof(detail)));
	return run_owned(b, "give the job back", err,
			 "SELECT fleet.fail_build($1, $2, $3, $4, $5, $6)", &p);
}
