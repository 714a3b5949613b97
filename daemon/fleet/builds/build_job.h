// SPDX-License-Identifier: Apache-2.0
/*
 * build_job - a builder's side of the queue in the database: takes a job, keeps its lease, gives the
 * result. A server that goes away is waited for; the lease's number decides whether a late result still
 * counts. Called by the command "build".
 */
#ifndef MD_FLEET_BUILD_JOB_H
#define MD_FLEET_BUILD_JOB_H

#include <stdbool.h>
#include <time.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "daemon/fleet/whole_file.h"
#include "libprof/base/err.h"

#define MD_BUILD_OPTIONS_MAX 1000

struct md_builder {
	PGconn *conn;
	const char *version; /* of Morph: only jobs of this version are taken */
	double give_up_s;    /* how long to wait for a server that is gone */
};

struct md_build_job {
	struct mp_id id;
	char options[MD_BUILD_OPTIONS_MAX + 1];
	int64_t lease, lease_s;
	time_t renewed; /* the last time */
};

struct md_build_result {
	const struct md_whole_file *output, *plan;
	struct mp_id id; /* of the output */
	const char *detail;
};

/* Return: 0; -ENOENT: there is no job; as md_pg_run(). */
int md_build_job_take(struct md_builder *builder, struct md_build_job *job, struct mp_err *err);
/*
 * Renews the lease if a quarter of it is over. Return: false: the job is not this builder's any more. A
 * server that is gone does not count.
 */
bool md_build_job_renew(struct md_builder *builder, struct md_build_job *job);
/* Stores the result. Return: 0; -ESTALE: the job is not this builder's any more; as md_pg_run(). */
int md_build_job_finish(struct md_builder *builder, const struct md_build_job *job,
			const struct md_build_result *result, struct mp_err *err);
/*
 * Gives the job up for the reason @why. @how: "failed"; "lacking": its original is not here, and another builder may take the
 * job still; "again": back to the queue. Return: as above.
 */
int md_build_job_fail(struct md_builder *builder, const struct md_build_job *job, const char *how,
		      const char *why, struct mp_err *err);

#endif
