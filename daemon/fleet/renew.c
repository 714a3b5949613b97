// SPDX-License-Identifier: Apache-2.0
/* renew - see renew.h. */
#include "daemon/fleet/renew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/fleet/host_evidence.h"
#include "daemon/fleet/pg_params.h"
#include "daemon/morph/request.h"

const char *md_renew_result_name(enum md_renew_result result)
{
	static const char *const names[MD_NR_RENEW_RESULTS] = {"leased", "waits", "released",
							       "undone", "ended", "failed"};

	return names[result];
}

/* The server's answer about a lease. */
struct offer {
	char answer[16], cause[256];
	int64_t lease_s;
};

static void add_text(struct md_pg_params *p, const char *text)
{
	md_pg_add_bytes(p, MD_PG_TEXT, text, strlen(text));
}

static void add_build(struct md_pg_params *p, const struct md_lease *lease)
{
	md_pg_add_bytes(p, MD_PG_BYTEA, lease->module, lease->module_size);
	add_text(p, lease->options);
	add_text(p, lease->version);
	md_pg_add_number(p, MD_PG_INT4, lease->release);
}

static int send_evidence(struct md_renew *renew, const struct md_lease *lease,
			 const struct md_host_evidence *evidence, struct mp_err *err)
{
	struct md_pg_params p = {0};
	struct timespec now;
	char *facts = json_dumps(evidence->facts, JSON_COMPACT | JSON_REAL_PRECISION(12));
	int r;

	if (!facts)
		return mp_err_set(err, ENOMEM, "out of memory");
	clock_gettime(CLOCK_REALTIME, &now);
	add_build(&p, lease);
	md_pg_add_number(&p, MD_PG_INT8, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	add_text(&p, evidence->state);
	add_text(&p, facts);
	r = md_pg_run(renew->conn, "SELECT fleet.push_audit($1, $2, $3, $4, $5, $6, $7::jsonb)", &p,
		      "send what is known of a build", NULL, err);
	free(facts);
	return r;
}

static void copy_value(const PGresult *result, int column, char *out, size_t size)
{
	snprintf(out, size, "%.*s",
		 PQgetisnull(result, 0, column) ? 0 : PQgetlength(result, 0, column),
		 PQgetvalue(result, 0, column));
}

static int ask(struct md_renew *renew, const struct md_lease *lease, struct offer *out,
	       struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	add_build(&p, lease);
	r = md_pg_run(renew->conn,
		      "SELECT answer, cause, lease_s FROM fleet.canary_offer($1, $2, $3, $4)", &p,
		      "ask for a lease", &result, err);
	if (r)
		return r;
	*out = (struct offer){0};
	if (PQntuples(result) != 1 || PQnfields(result) != 3) {
		r = mp_err_set(err, EPROTO, "the server answers in another form: upgrade Morph or "
					    "its tables");
	} else {
		copy_value(result, 0, out->answer, sizeof(out->answer));
		copy_value(result, 1, out->cause, sizeof(out->cause));
		if (!PQgetisnull(result, 0, 2) && PQgetlength(result, 0, 2) == 8)
			out->lease_s = md_pg_get(PQgetvalue(result, 0, 2), 8);
	}
	PQclear(result);
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
	struct md_pg_params p = {0};
	struct mp_err unknown;

	if (!renew->conn || renew->lost)
		return;
	add_build(&p, lease);
	add_text(&p, "undone");
	add_text(&p, why);
	md_pg_run(renew->conn, "SELECT fleet.report_build($1, $2, $3, $4, $5, $6)", &p,
		  "report a build", NULL, &unknown);
}

static void fail(struct md_renewal *out, const struct mp_err *err)
{
	out->result = MD_RENEW_FAILED;
	snprintf(out->why, sizeof(out->why), "%s", err->msg);
}

/* The lease goes only behind the build: after a kill in between, the next call undoes what is undone. */
static void undo(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		 const struct md_host_evidence *evidence, struct md_renewal *out)
{
	struct mp_err err = {""};

	if (evidence->installed && put_back(renew, lease, &err)) {
		fail(out, &err);
		return;
	}
	out->result = evidence->installed ? MD_RENEW_UNDONE : MD_RENEW_ENDED;
	if (md_leases_remove(leases, lease->path, &err))
		fail(out, &err);
	else
		report_undone(renew, lease, out->why);
}

/* ---- one lease ----------------------------------------------------------------------------- */

static void take_offer(struct md_renew *renew, struct md_leases *leases,
		       const struct md_lease *lease, const struct md_host_evidence *evidence,
		       const struct offer *offer, struct md_renewal *out)
{
	struct md_lease next = *lease;
	struct mp_err err = {""};

	if (!strcmp(offer->answer, "withdrawn") || !strcmp(offer->answer, "no")) {
		snprintf(out->why, sizeof(out->why), "the fleet %s: %s",
			 offer->answer[0] == 'w' ? "withdrew it" : "did not choose this host",
			 offer->cause[0] ? offer->cause : "no reason given");
		undo(renew, leases, lease, evidence, out);
		return;
	}
	next.granted_s = renew->now_s;
	if (!strcmp(offer->answer, "keep")) {
		next.expires_s = 0;
		out->result = MD_RENEW_RELEASED;
	} else if (!strcmp(offer->answer, "lease") && offer->lease_s > 0 &&
		   offer->lease_s <= 366 * 86400) {
		next.expires_s = renew->now_s + offer->lease_s;
		out->result = MD_RENEW_LEASED;
	} else {
		out->result = MD_RENEW_WAITS;
		snprintf(out->why, sizeof(out->why), "the server gives no new lease now");
		return;
	}
	if (md_leases_put(leases, &next, &err))
		fail(out, &err);
	out->lease = next;
}

/* Return: 0; -ENOTCONN: there is no answer; another error of this build alone. */
static int talk(struct md_renew *renew, const struct md_lease *lease,
		const struct md_host_evidence *evidence, struct offer *offer, struct mp_err *err)
{
	int r = renew->conn && !renew->lost ? 0 : -ENOTCONN;

	if (!r)
		r = send_evidence(renew, lease, evidence, err);
	/* The evidence may be refused, for instance as too much for a day. The lease may be given all the same. */
	if (!r || r != -ENOTCONN)
		r = r == -ENOTCONN ? r : ask(renew, lease, offer, err);
	renew->lost |= r == -ENOTCONN;
	return r;
}

void md_renew_lease(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		    struct md_renewal *out)
{
	struct md_host_evidence evidence = {0};
	struct offer offer = {0};
	struct mp_err err = {""};

	*out = (struct md_renewal){.lease = *lease, .result = MD_RENEW_WAITS};
	if (md_host_evidence_read(renew->store, renew->state_dir, lease, &evidence, &err)) {
		fail(out, &err);
		json_decref(evidence.facts);
		return;
	}
	if (talk(renew, lease, &evidence, &offer, &err)) {
		snprintf(out->why, sizeof(out->why), "%s",
			 err.msg[0] ? err.msg : "the server is gone");
		if (md_lease_is_over(lease, renew->now_s)) {
			snprintf(out->why, sizeof(out->why), "its lease is over, and no server "
							     "renews it");
			undo(renew, leases, lease, &evidence, out);
		}
	} else if (evidence.ended) {
		/* The server knows now. The host's own worker undid the build, or never put it in place. */
		out->result = MD_RENEW_ENDED;
		snprintf(out->why, sizeof(out->why), "%s", evidence.state);
		if (md_leases_remove(leases, lease->path, &err))
			fail(out, &err);
		else if (!strcmp(evidence.state, "undone"))
			report_undone(renew, lease, "this host undid it");
	} else {
		take_offer(renew, leases, lease, &evidence, &offer, out);
	}
	json_decref(evidence.facts);
}
