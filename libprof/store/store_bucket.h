// SPDX-License-Identifier: Apache-2.0
/*
 * store_bucket - lists the buckets of a module: spans of days whose entries are kept together.
 * Called by store_series and store_paths, whose tables have the same columns.
 */
#ifndef MP_STORE_BUCKET_H
#define MP_STORE_BUCKET_H

#include "libprof/store/store_private.h"
#include "libprof/store/store_span.h"

struct mp_bucket {
	int64_t key, first_day, last_day;
	uint64_t total, nr_bytes;
	/* the last column has one of these */
	bool exact;	   /* store_series: all of it was counted, not sampled */
	uint64_t checksum; /* store_paths: sum of the hashes of all rows */
};

/*
 * Reads the rows of @stmt: key, first_day, last_day, total, nr_bytes, and exact or checksum, in
 * order of days. Checks that they do not overlap. Ownership: free(*@out).
 */
int mp_buckets_read(struct mp_store *store, sqlite3_stmt *stmt, struct mp_bucket **out, size_t *nr,
		    struct mp_err *err);
/* The spans of @buckets. Ownership: free(*@out). Return: 0, -ENOMEM. */
int mp_buckets_list_spans(const struct mp_bucket *buckets, size_t nr, struct mp_span **out,
			  struct mp_err *err);
/*
 * A module's share of the database: @fixed bytes and a part of its text. Rows fill b-tree pages
 * to about two thirds, so the bytes that the store counts may be at most 60 % of it.
 */
static inline uint64_t mp_bucket_budget(uint64_t fixed, uint64_t text_size, uint64_t text_divisor)
{
	return (fixed + text_size / text_divisor) / 100 * 60;
}

#endif
