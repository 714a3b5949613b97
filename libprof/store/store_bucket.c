// SPDX-License-Identifier: Apache-2.0
/* store_bucket - reads the buckets of a module; see store_bucket.h. */
#include "libprof/store/store_bucket.h"

#include <errno.h>
#include <stdlib.h>

int mp_buckets_read(struct mp_store *store, sqlite3_stmt *stmt, struct mp_bucket **out, size_t *nr,
		    struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t n = 0, max = 0;
	int r;

	while ((r = mp_store_step(store, stmt, "read", err)) > 0) {
		struct mp_bucket b = {
			.key = sqlite3_column_int64(stmt, 0),
			.first_day = sqlite3_column_int64(stmt, 1),
			.last_day = sqlite3_column_int64(stmt, 2),
			.total = (uint64_t)sqlite3_column_int64(stmt, 3),
			.nr_bytes = (uint64_t)sqlite3_column_int64(stmt, 4),
			.exact = sqlite3_column_int64(stmt, 5) == 1,
			.checksum = (uint64_t)sqlite3_column_int64(stmt, 5),
		};

		if (b.first_day > b.last_day || (n && buckets[n - 1].last_day >= b.first_day) ||
		    b.total > INT64_MAX || b.nr_bytes > INT64_MAX) {
			r = mp_store_damaged(store, "days that overlap", err);
			break;
		}
		r = mp_store_grow(buckets, max, n + 1, err);
		if (r)
			break;
		buckets[n++] = b;
	}
	sqlite3_reset(stmt);
	if (r) {
		free(buckets);
		return r;
	}
	*out = buckets;
	*nr = n;
	return 0;
}

int mp_buckets_list_spans(const struct mp_bucket *buckets, size_t nr, struct mp_span **out,
			  struct mp_err *err)
{
	struct mp_span *spans = malloc((nr + 1) * sizeof(*spans));

	if (!spans)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++)
		spans[i] = (struct mp_span){buckets[i].first_day, buckets[i].last_day,
					    buckets[i].exact};
	*out = spans;
	return 0;
}
