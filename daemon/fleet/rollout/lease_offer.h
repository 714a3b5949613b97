// SPDX-License-Identifier: Apache-2.0
/*
 * lease_offer - asks the server whether this host may have a build, and for how long. Called by install,
 * before a build goes in place, and by renew.
 */
#ifndef MD_LEASE_OFFER_H
#define MD_LEASE_OFFER_H

#include "daemon/fleet/pg.h"
#include "daemon/fleet/rollout/lease.h"

enum md_offer {
	MD_OFFER_LEASE,	    /* for a time */
	MD_OFFER_KEEP,	    /* for ever: the build is released to all hosts */
	MD_OFFER_WAIT,	    /* no new lease */
	MD_OFFER_NO,	    /* this host is not chosen */
	MD_OFFER_WITHDRAWN, /* no host may have it */
};

/*
 * md_lease_ask - asks about the build of @lease, and sets its times as the answer says. @cause: the server's
 * reason. Return: 0; -EPROTO: a damaged answer; as md_pg_run().
 */
int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err);

#endif
