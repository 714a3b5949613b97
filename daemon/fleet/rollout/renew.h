// SPDX-License-Identifier: Apache-2.0
/*
 * renew - looks after the fleet's builds that this host has: sends what is known of them, renews their
 * leases, and undoes a build that was withdrawn, or whose lease ended while the server was gone. Decides
 * nothing about builds that this host does not have yet. Called by renew_command.
 */
#ifndef MD_RENEW_H
#define MD_RENEW_H

#include <libpq-fe.h>

#include "daemon/fleet/rollout/lease.h"
#include "libprof/store/store.h"

enum md_renew_result {
	MD_RENEW_LEASED,   /* the lease was renewed */
	MD_RENEW_WAITS,	   /* it has a lease, which was not renewed */
	MD_RENEW_RELEASED, /* the build needs no lease any more */
	MD_RENEW_UNDONE,   /* the original is back */
	MD_RENEW_ENDED,	   /* the build is not in place any more */
	MD_RENEW_FAILED,   /* @why says what */
	MD_NR_RENEW_RESULTS
};
const char *md_renew_result_name(enum md_renew_result result);

struct md_renewal {
	struct md_lease lease;
	enum md_renew_result result;
	char why[512];
};

struct md_renew {
	PGconn *conn; /* NULL: the server is gone */
	struct mp_store *store;
	const char *db, *state_dir, *backup_dir; /* NULL backup_dir: the default */
	int64_t now_s;
	bool lost; /* the connection was lost on the way */
};

/* Takes the step for one lease. The caller has @leases open. */
void md_renew_lease(struct md_renew *renew, struct md_leases *leases, const struct md_lease *lease,
		    struct md_renewal *out);

#endif
