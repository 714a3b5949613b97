// SPDX-License-Identifier: Apache-2.0
/* lease_offer - see lease_offer.h. */
#include "daemon/fleet/rollout/lease_offer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* No policy means a longer time. */
#define LEASE_MAX_S (366 * INT64_C(86400))

void md_lease_add_build(struct md_pg_params *p, const struct md_lease *lease)
{
	md_pg_add_bytes(p, MD_PG_BYTEA, lease->module, lease->module_size);
	md_pg_add_bytes(p, MD_PG_TEXT, lease->options, strlen(lease->options));
	md_pg_add_bytes(p, MD_PG_TEXT, lease->version, strlen(lease->version));
	md_pg_add_number(p, MD_PG_INT4, lease->release);
}

static void copy_value(const PGresult *result, int column, char *out, size_t size)
{
	snprintf(out, size, "%.*s",
		 PQgetisnull(result, 0, column) ? 0 : PQgetlength(result, 0, column),
		 PQgetvalue(result, 0, column));
}

/* Return: 0, -EPROTO. */
static int read_answer(const PGresult *result, struct md_lease *lease, int64_t now_s,
		       enum md_offer *answer)
{
	static const char *const names[] = {"lease", "keep", "wait", "no", "withdrawn"};
	char name[16];
	int64_t lease_s = 0;

	copy_value(result, 0, name, sizeof(name));
	if (!PQgetisnull(result, 0, 2) && PQgetlength(result, 0, 2) == 8)
		lease_s = md_pg_get(PQgetvalue(result, 0, 2), 8);
	for (int i = MD_OFFER_LEASE; i <= MD_OFFER_WITHDRAWN; i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*answer = (enum md_offer)i;
		if (i == MD_OFFER_LEASE && (lease_s < 1 || lease_s > LEASE_MAX_S))
			return -EPROTO;
		if (i <= MD_OFFER_KEEP) {
			lease->granted_s = now_s;
			lease->expires_s = i == MD_OFFER_KEEP ? 0 : now_s + lease_s;
		}
		return 0;
	}
	return -EPROTO;
}

int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	md_lease_add_build(&p, lease);
	r = md_pg_run(conn, "SELECT answer, cause, lease_s FROM fleet.canary_offer($1, $2, $3, $4)",
		      &p, "ask for a lease", &result, err);
	if (r)
		return r;
	r = -EPROTO;
	if (PQntuples(result) == 1 && PQnfields(result) == 3) {
		copy_value(result, 1, cause, size);
		r = read_answer(result, lease, now_s, answer);
	}
	PQclear(result);
	return r ? mp_err_set(err, -r, "%s",
			      "the server answers in another form: upgrade Morph or its tables")
		 : 0;
}
