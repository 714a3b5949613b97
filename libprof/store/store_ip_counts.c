// SPDX-License-Identifier: Apache-2.0
/*
 * store_ip_counts - counts of samples per instruction address. Decides which counts are
 * accepted and how two of one address combine; store_series decides how they are kept.
 * Called by daemon (add) and by all readers of counts.
 */
#include <errno.h>

#include "libprof/store/store_codec.h"
#include "libprof/store/store_series.h"

static size_t nr_max(size_t size)
{
	return size < MP_CHUNK_SIZE ? size : MP_CHUNK_SIZE;
}

static size_t encode(uint64_t base, const void *entries, size_t nr, uint8_t *out)
{
	return mp_chunk_encode(base, entries, nr, out);
}

static int decode(uint64_t base, const uint8_t *data, size_t size, void *out, size_t *nr)
{
	return mp_chunk_decode(base, data, size, out, nr);
}

static int merge(const void *entries_a, size_t nr_a, const void *entries_b, size_t nr_b,
		 void *merged, size_t *nr)
{
	const struct mp_ip_count *a = entries_a, *b = entries_b;
	struct mp_ip_count *out = merged;
	size_t i = 0, k = 0, n = 0;

	while (i < nr_a || k < nr_b) {
		struct mp_ip_count next;

		if (k == nr_b || (i < nr_a && a[i].vaddr <= b[k].vaddr))
			next = a[i++];
		else
			next = b[k++];
		if (!next.count)
			continue;
		if (!n || out[n - 1].vaddr != next.vaddr)
			out[n++] = next;
		else if (__builtin_add_overflow(out[n - 1].count, next.count, &out[n - 1].count))
			return -EOVERFLOW;
	}
	*nr = n;
	return 0;
}

static uint64_t sum(const void *entries, size_t nr)
{
	const struct mp_ip_count *counts = entries;
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += counts[i].count;
	return total;
}

static const char *const sql[] = MP_SERIES_SQL("bucket", "chunk", "nr_samples");

const struct mp_series mp_series_ip_counts = {
	.what = "samples",
	.first_stmt = MP_STMT_COUNTS,
	.sql = sql,
	.entry_size = sizeof(struct mp_ip_count),
	.entry_bytes_max = MP_CHUNK_ENTRY_MAX,
	.nr_max = nr_max,
	.encode = encode,
	.decode = decode,
	.merge = merge,
	.sum = sum,
};
_Static_assert(offsetof(struct mp_ip_count, vaddr) == 0, "store_series reads it");

int mp_ip_counts_add(struct mp_store *store, int64_t module, int64_t when_s, bool exact,
		     const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	uint64_t nr_samples = 0;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "counts of a time before 1970");
	for (size_t i = 0; i < nr; i++) {
		if (i && counts[i].vaddr <= counts[i - 1].vaddr)
			return mp_err_set(err, EINVAL, "counts must ascend by address");
		if (__builtin_add_overflow(nr_samples, counts[i].count, &nr_samples) ||
		    nr_samples > INT64_MAX)
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples",
					  store->path);
	}
	if (!nr_samples)
		return 0;
	return mp_series_add(store, &mp_series_ip_counts, module, when_s, exact, counts, nr,
			     nr_samples, err);
}

int mp_store_add_ip_counts(struct mp_store *store, int64_t module, int64_t when_s,
			   const struct mp_ip_count *counts, size_t nr, struct mp_err *err)
{
	return mp_ip_counts_add(store, module, when_s, false, counts, nr, err);
}

int mp_store_read_ip_counts(struct mp_store *store, int64_t module, int64_t since_s,
			    struct mp_ip_count **out, size_t *nr, struct mp_err *err)
{
	void *entries = NULL;
	int r = mp_series_read(store, &mp_series_ip_counts, module, since_s, &entries, nr, err);

	if (!r)
		*out = entries;
	return r;
}
