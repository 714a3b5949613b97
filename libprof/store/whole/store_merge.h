// SPDX-License-Identifier: Apache-2.0
/* store_merge - adds one database to another: direct combining (Morph, SOSP 1997, section 3.3). */
#ifndef MP_STORE_MERGE_H
#define MP_STORE_MERGE_H

#include "libprof/store/store.h"

struct mp_merge_stats {
	size_t nr_modules; /* with samples or transfers */
	size_t nr_sessions;
	uint64_t nr_samples, nr_transfers;
	uint64_t nr_ways;     /* ways of branches that registers of samples showed */
	uint64_t nr_paths;    /* samples with a path */
	uint64_t nr_contexts; /* samples in trees of calling contexts */
	uint64_t nr_calls;    /* calls that a clock of calls sampled */
};

/*
 * mp_store_merge - adds all of @in to @out: modules by identity; counts, edges, ways,
 * paths and activity by day; sessions with their ledgers. Both must be inside a transaction, so that
 * a failure can be rolled back.
 *
 * A database has no identity, but its sessions do. Two sessions are the same if they began
 * in the same second and have the same collector, reason, event and rate, and one is equal
 * to the other or an earlier state of it: it ended no later, and its ledger is nowhere
 * larger. @again: add it even if it was added before.
 * Return: 0, -EEXIST (a session of @in is already in @out), -EINVAL (no transaction),
 * -errno.
 */
int mp_store_merge(struct mp_store *out, struct mp_store *in, bool again,
		   struct mp_merge_stats *stats, struct mp_err *err);

#endif
