// SPDX-License-Identifier: Apache-2.0
/*
 * store_ways - ways of conditional branches that registers of samples showed.
 *
 * Who executes the instructions behind a sample with its registers knows which way the next branches
 * go. These ways are evidence like edges: no ledger contains them, and a profile does not need them.
 * One sample may show ways of several branches, or none. Days are kept and folded as those of counts.
 * Written by morphd's flush and by morph-stats import; read by all who infer counts.
 */
#ifndef MP_STORE_WAYS_H
#define MP_STORE_WAYS_H

#include "libprof/base/ip_count.h"
#include "libprof/store/store.h"

/*
 * Adds @ways (strictly ascending vaddr) of @module to the day that holds @when_s; without any way, nothing
 * is done. Return: 0, -ENOENT (no such module), -EINVAL (not ascending, or a time before 1970),
 * -EOVERFLOW (more than 2^63).
 */
int mp_store_add_ways(struct mp_store *store, int64_t module, int64_t when_s,
		      const struct mp_way_count *ways, size_t nr, struct mp_err *err);
/*
 * Ways since @since_s (0: all), strictly ascending vaddr. Having none is no error: *@nr 0, *@out NULL.
 * Ownership: free(*@out). Return: 0, -ENOENT (no such module), -EBADMSG (damaged).
 */
int mp_store_read_ways(struct mp_store *store, int64_t module, int64_t since_s,
		       struct mp_way_count **out, size_t *nr, struct mp_err *err);
/* The number of all ways of the database, taken or not. */
int mp_store_sum_ways(struct mp_store *store, uint64_t *nr, struct mp_err *err);

/* For store_merge: adds the ways of @in's module @from to those of @out's module @to, and to *@nr. */
int mp_store_merge_ways(struct mp_store *out, int64_t to, struct mp_store *in, int64_t from,
			uint64_t *nr, struct mp_err *err);

#endif
