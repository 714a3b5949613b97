// SPDX-License-Identifier: Apache-2.0
/* renew - see renew.h. */
#include "daemon/fleet/rollout/renew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/rollout/host_evidence.h"
#include "daemon/fleet/rollout/lease.h"
#include "daemon/morph/request.h"
#include "daemon/worker/work_dir.h"
#include "libprof/base/clock.h"
#include "libprof/cli/json.h"

const char *md_renew_result_name(enum md_renew_result result)
{
	static const char *const names[MD_NR_RENEW_RESULTS] = {"leased", "waits", "released",
							       "undone", "ended", "failed"};

	return names[result];
}

static int send_evidence(struct md_renew *renew, const struct md_lease *lease,
			 const struct md_host_evidence *evidence, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	char *facts = json_dumps(evidence->facts, JSON_COMPACT | JSON_REAL_PRECISION(12));
	int r;

	if (!facts || !mp_json_is_whole(evidence->facts)) {
		free(facts);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	r = md_pg_run(renew->conn, "send what is known of a build", NULL, err,
		      "SELECT fleet.push_audit($1, $2, $3, $4, $5, $6, $7)", "bttiitt", key,
		      md_module_key(&lease->id, key), lease->options, lease->version,
		      (int64_t)lease->release, mp_clock_ns(CLOCK_REALTIME) / 1000, evidence->state,
		      facts);
	free(facts);
	return r;
}

/* ---- undo ---------------------------------------------------------------------------------- */

static int put_back(struct md_renew *renew, const struct md_lease *lease, struct mp_err *err)
{
	struct md_request request = {.store = renew->store,
				     .db = renew->db,
				     .backup_dir = renew->backup_dir,
				     .path = lease->path};
	int r = md_request_undo(&request, err);

	if (r > 0)
		r = mp_err_set(err, EIO, "%s: %.300s", lease->path, request.why);
	md_request_fini(&request);
	return r;
}

/* Tells the server. An old lease may be of a build that the server does not know any more. */
static void report_undone(struct md_renew *renew, const struct md_lease *lease, const char *why)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	struct mp_err unknown;

	if (renew->conn && !renew->lost)
		md_pg_run(renew->conn, "report a build", NULL, &unknown,
			  "SELECT fleet.report_build($1, $2, $3, $4, 'undone', $5, NULL)", "bttit",
			  key, md_module_key(&lease->id, key), lease->options, lease->version,
			  (int64_t)lease->release, why);
}

static void fail(struct md_renewal *out, const struct mp_err *err)
{
	out->result = MD_RENEW_FAILED;
	snprintf(out->why, sizeof(out->why), "%s", err->msg);
}

/*
 * A version that waits for the worker's audit is not put in place any more. The worker may be about to do
 * so: only with its lock is the job's state what is at the path.
 */
static int cancel(struct md_renew *renew, const struct md_lease *lease, const char *why,
		  struct mp_err *err)
{
	const struct mp_job_step step = {"undo", "withdrawn", why, renew->now_s};
	struct mp_job job = {0};
	int lock = md_state_lock(renew->state_dir, err), r;

	if (lock < 0)
		return lock;
	r = mp_store_find_job(renew->store, lease->path, &job, err);
	if (!r)
		r = mp_job_state_in_place(job.state)
			    ? put_back(renew, lease, err)
			    : mp_store_advance_job(renew->store, &job, MP_JOB_UNDONE, &step, err);
	mp_store_fini_job(&job);
	close(lock);
	return r;
}

/* The lease goes only behind the build: after a kill in between, the next call undoes what is undone. */
static void undo(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		 const struct md_host_evidence *evidence, struct md_renewal *out)
{
	struct mp_err err = {""};
	int r = 0;

	if (evidence->installed)
		r = put_back(renew, lease, &err);
	else if (!evidence->ended)
		r = cancel(renew, lease, out->why, &err);
	out->result = evidence->ended ? MD_RENEW_ENDED : MD_RENEW_UNDONE;
	if (r || md_leases_remove(leases, lease->path, &err))
		fail(out, &err);
	else
		report_undone(renew, lease, out->why);
}

/* ---- one lease ----------------------------------------------------------------------------- */

/* The server's answer to a request for a lease. */
struct said {
	enum md_offer answer;
	struct md_lease next;
	char cause[256];
};

static void take_answer(struct md_renew *renew, struct md_leases *leases,
			const struct md_host_evidence *evidence, const struct said *said,
			struct md_renewal *out)
{
	struct mp_err err = {""};

	if (said->answer == MD_OFFER_WITHDRAWN || said->answer == MD_OFFER_NO) {
		snprintf(out->why, sizeof(out->why), "%s%s%s",
			 said->answer == MD_OFFER_NO ? "the fleet did not choose this host"
						     : "the fleet withdrew it",
			 said->cause[0] ? ": " : "", said->cause);
		undo(renew, leases, &said->next, evidence, out);
		return;
	}
	if (said->answer == MD_OFFER_WAIT) {
		snprintf(out->why, sizeof(out->why), "the server gives no new lease now");
		return;
	}
	out->result = said->answer == MD_OFFER_KEEP ? MD_RENEW_RELEASED : MD_RENEW_LEASED;
	if (md_leases_put(leases, &said->next, &err))
		fail(out, &err);
	out->lease = said->next;
}

/* Return: 0; -ENOTCONN: there is no answer; another error of this build alone. */
static int talk(struct md_renew *renew, const struct md_lease *lease,
		const struct md_host_evidence *evidence, struct said *said, struct mp_err *err)
{
	int r = -ENOTCONN;

	said->next = *lease;
	if (renew->conn && !renew->lost)
		r = send_evidence(renew, lease, evidence, err);
	/* Evidence may be refused, for instance as too much for a day. The lease may be given all the same. */
	if (r != -ENOTCONN)
		r = md_lease_ask(renew->conn, &said->next, renew->now_s, &said->answer, said->cause,
				 sizeof(said->cause), err);
	renew->lost |= r == -ENOTCONN;
	return r;
}

/* The server does not answer about this build. */
static void without_server(struct md_renew *renew, struct md_leases *leases,
			   const struct md_lease *lease, const struct md_host_evidence *evidence,
			   const struct mp_err *why, struct md_renewal *out)
{
	if (!md_lease_is_over(lease, renew->now_s)) {
		snprintf(out->why, sizeof(out->why), "%s",
			 why->msg[0] ? why->msg : "the server is gone");
		return;
	}
	snprintf(out->why, sizeof(out->why), "its lease is over, and no server renews it");
	undo(renew, leases, lease, evidence, out);
}

/* The server knows what became of it: the host's own worker undid it, or never put it in place. */
static void forget(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		   const struct md_host_evidence *evidence, struct md_renewal *out)
{
	struct mp_err err = {""};

	out->result = MD_RENEW_ENDED;
	snprintf(out->why, sizeof(out->why), "%s", evidence->state);
	if (md_leases_remove(leases, lease->path, &err))
		fail(out, &err);
	else if (!strcmp(evidence->state, "undone"))
		report_undone(renew, lease, "this host undid it");
}

void md_renew_lease(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		    struct md_renewal *out)
{
	struct md_host_evidence evidence = {0};
	struct mp_err err = {""};
	struct said said = {0};

	*out = (struct md_renewal){.lease = *lease,
				   .result = lease->expires_s ? MD_RENEW_WAITS : MD_RENEW_RELEASED};
	if (md_host_evidence_read(renew->store, renew->state_dir, lease, &evidence, &err))
		fail(out, &err);
	else if (talk(renew, lease, &evidence, &said, &err))
		without_server(renew, leases, lease, &evidence, &err, out);
	else if (evidence.ended)
		forget(renew, leases, lease, &evidence, out);
	else
		take_answer(renew, leases, &evidence, &said, out);
	json_decref(evidence.facts);
}
