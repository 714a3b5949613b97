// SPDX-License-Identifier: Apache-2.0
/* lease_offer - see lease_offer.h. */
#include "daemon/fleet/rollout/lease_offer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/stats/stats.h"

/* No policy means a longer time. */
#define LEASE_MAX_S (366 * 86400.0)

int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err)
{
	static const char *const names[] = {"lease", "keep", "wait", "no", "withdrawn"};
	uint8_t key[MD_MODULE_KEY_MAX];
	const json_t *row;
	double lease_s;
	json_t *rows;
	int i, r = md_pg_rows(
		       conn, "ask for a lease", &rows, err,
		       "SELECT answer, cause, lease_s FROM fleet.canary_offer($1, $2, $3, $4)",
		       "btti", key, md_module_key(&lease->id, key), lease->options, lease->version,
		       (int64_t)lease->release);

	if (r)
		return r;
	row = json_array_get(rows, 0);
	lease_s = md_row_number(row, "lease_s");
	i = md_stats_find_word(md_row_text(row, "answer"), names, 5);
	if (i < 0 || (i == MD_OFFER_LEASE && (lease_s < 1 || lease_s > LEASE_MAX_S)))
		r = mp_err_set(err, EPROTO, "%s",
			       "the server answers in another form: upgrade Morph or its tables");
	*answer = (enum md_offer)i;
	snprintf(cause, size, "%s", md_row_text(row, "cause"));
	if (!r && i <= MD_OFFER_KEEP) {
		lease->granted_s = now_s;
		lease->expires_s = i == MD_OFFER_KEEP ? 0 : now_s + (int64_t)lease_s;
	}
	json_decref(rows);
	return r;
}
