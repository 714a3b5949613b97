// SPDX-License-Identifier: Apache-2.0
/*
 * flush - writes what attribute has gathered into the store, in one transaction.
 *
 * Decides only one thing: counts of an optimised module are stored as counts of its original, and
 * beside them by its own addresses.
 * Called by the pipeline at each interval.
 */
#ifndef MD_FLUSH_H
#define MD_FLUSH_H

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/sample_owner.h"
#include "libprof/store/store.h"

struct md_flush {
	struct mp_store *store;
	struct md_sample_owner *owner; /* counts samples by process; NULL: not counted */
	struct mp_session session;
	uint64_t time_ns; /* time spent in flush */
	uint64_t nr;	  /* number of transactions */
};

/* The caller sets @flush->store and the texts of ->session. Return: 0 or the store's -errno. */
int md_flush_start(struct md_flush *flush, int64_t now_s, struct mp_err *err);
/*
 * md_flush_write - store @at's pending counts, edges, activity and ledger, and the counts of
 * @flush->owner: all or nothing. @when_s: unix time of the samples. Empties @at on success.
 * Return: 0, -errno of the store, -EBADMSG: the ledger does not add up. After an error nothing
 * is written and @at is unchanged.
 */
int md_flush_write(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		   struct mp_err *err);

#endif
