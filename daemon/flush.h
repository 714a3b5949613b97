// SPDX-License-Identifier: Apache-2.0
/*
 * flush - what attribute has gathered, into the store, in one transaction.
 *
 * Decides nothing about samples and transfers but one thing: those of an optimised module are
 * written as the original's. Called by the pipeline at each interval.
 */
#ifndef MD_FLUSH_H
#define MD_FLUSH_H

#include "daemon/attribute.h"
#include "daemon/who.h"
#include "libprof/store.h"

struct md_flush {
	struct mp_store *store;
	struct md_who *who; /* samples by process; NULL: not counted */
	struct mp_session session;
	uint64_t time_ns; /* spent in here */
	uint64_t nr;	  /* transactions */
};

/* @flush->store and ->session's texts are set by the caller. Return: 0 or the store's -errno. */
int md_flush_start(struct md_flush *flush, int64_t now_s, struct mp_err *err);
/*
 * md_flush_write - all of @at's pending counts, edges, activity and ledger, and of @flush->who's, or nothing.
 * @when_s: unix time of the samples. @at is emptied when they are in the store.
 * Return: 0, -errno of the store (nothing is written, @at is as before), -EBADMSG where the
 * ledger does not add up: then nothing is written either.
 */
int md_flush_write(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		   struct mp_err *err);

#endif
