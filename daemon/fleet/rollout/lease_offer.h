// SPDX-License-Identifier: Apache-2.0
/*
 * lease_offer - asks the server whether this host may have a build, and for how long. Called by install,
 * before a build goes in place, and by renew.
 */
#ifndef MD_LEASE_OFFER_H
#define MD_LEASE_OFFER_H

#include <libpq-fe.h>

#include "daemon/fleet/rollout/lease.h"
#include "daemon/fleet/pg_params.h"

enum md_offer {
	MD_OFFER_LEASE,	    /* for a time */
	MD_OFFER_KEEP,	    /* for ever: the build is released to all hosts */
	MD_OFFER_WAIT,	    /* no new lease */
	MD_OFFER_NO,	    /* this host is not chosen */
	MD_OFFER_WITHDRAWN, /* no host may have it */
};

/* The parameters $1 to $4 of functions about one build. @lease must stay where it is. */
void md_lease_add_build(struct md_pg_params *p, const struct md_lease *lease);
/*
 * md_lease_ask - asks about the build of @lease, and sets its times as the answer says. @cause: the server's
 * reason. Return: 0; -EPROTO: a damaged answer; as md_fleet_fail().
 */
int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err);

#endif
