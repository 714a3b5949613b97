// SPDX-License-Identifier: Apache-2.0
/*
 * store_merge - one database added to another: direct combining (Morph, SOSP 1997, section 3.3).
 */
#ifndef MP_STORE_MERGE_H
#define MP_STORE_MERGE_H

#include "libprof/store.h"

struct mp_merge_stats {
	size_t nr_modules; /* with samples or transfers */
	size_t nr_sessions;
	uint64_t nr_samples, nr_transfers;
	uint64_t nr_paths; /* samples that have one */
};

/*
 * mp_store_merge - add all of @in to @out: modules by identity, counts, edges, paths and activity in
 * their days, sessions with their ledgers. Both must be inside of a transaction, so that a failure
 * can be rolled back.
 *
 * Nothing in a database says which one it is, but its sessions do: one that began in the same
 * second, from the same collector, for the same reason, with the same event and rate, is the same
 * one if of the two one ended no later and its ledger is nowhere more than the other's: equal, or
 * an earlier state.
 * @again: add it nevertheless.
 *
 * Return: 0, -EEXIST a session of @in is in @out already, -EINVAL no transaction, -errno.
 */
int mp_store_merge(struct mp_store *out, struct mp_store *in, bool again,
		   struct mp_merge_stats *stats, struct mp_err *err);

#endif
