// SPDX-License-Identifier: Apache-2.0
/*
 * store_edges - counts of taken transfers of control, per (from, to). Decides which edges
 * are accepted and how two of one pair combine; store_series decides how they are kept (a
 * chunk holds the edges that leave its text). Called by daemon (add) and by all readers of
 * edges.
 */
#include <errno.h>

#include "libprof/store/store_codec.h"
#include "libprof/store/store_series.h"

static size_t nr_max(size_t size)
{
	return size / MP_EDGE_ENTRY_MIN + 1;
}

static size_t encode(uint64_t base, const void *entries, size_t nr, uint8_t *out)
{
	return mp_edge_encode(base, entries, nr, out);
}

static int decode(uint64_t base, const uint8_t *data, size_t size, void *out, size_t *nr)
{
	return mp_edge_decode(base, data, size, out, nr);
}

static int compare(const struct mp_edge_count *a, const struct mp_edge_count *b)
{
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

static int merge(const void *entries_a, size_t nr_a, const void *entries_b, size_t nr_b,
		 void *merged, size_t *nr)
{
	const struct mp_edge_count *a = entries_a, *b = entries_b;
	struct mp_edge_count *out = merged;
	size_t i = 0, k = 0, n = 0;

	while (i < nr_a || k < nr_b) {
		struct mp_edge_count next;

		if (k == nr_b || (i < nr_a && compare(&a[i], &b[k]) <= 0))
			next = a[i++];
		else
			next = b[k++];
		if (!next.count)
			continue;
		if (!n || compare(&out[n - 1], &next)) {
			out[n++] = next;
			continue;
		}
		if (__builtin_add_overflow(out[n - 1].count, next.count, &out[n - 1].count))
			return -EOVERFLOW;
		/* At most the counts, so this cannot overflow. */
		out[n - 1].mispredicted += next.mispredicted;
	}
	*nr = n;
	return 0;
}

static uint64_t sum(const void *entries, size_t nr)
{
	const struct mp_edge_count *edges = entries;
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += edges[i].count;
	return total;
}

static const char *const sql[] = MP_SERIES_SQL("edge_bucket", "edge_chunk", "nr_transfers");

const struct mp_series mp_series_edges = {
	.what = "transfers",
	.first_stmt = MP_STMT_EDGES,
	.sql = sql,
	.entry_size = sizeof(struct mp_edge_count),
	.entry_bytes_max = MP_EDGE_ENTRY_MAX,
	.nr_max = nr_max,
	.encode = encode,
	.decode = decode,
	.merge = merge,
	.sum = sum,
};
_Static_assert(offsetof(struct mp_edge_count, from) == 0, "store_series reads it");

/* Samples of an output (store_copies.h): @from in its own code, @to in the original's. */
static const char *const copies_sql[] = MP_SERIES_SQL("copy_bucket", "copy_chunk", "nr_samples");

const struct mp_series mp_series_copies = {
	.what = "samples of copies",
	.first_stmt = MP_STMT_COPIES,
	.sql = copies_sql,
	.entry_size = sizeof(struct mp_edge_count),
	.entry_bytes_max = MP_EDGE_ENTRY_MAX,
	.nr_max = nr_max,
	.encode = encode,
	.decode = decode,
	.merge = merge,
	.sum = sum,
};

/* Ways of branches (store_ways.c): an edge from the branch to itself. */
static int decode_ways(uint64_t base, const uint8_t *data, size_t size, void *out, size_t *nr)
{
	const struct mp_edge_count *edges = out;
	int r = mp_edge_decode(base, data, size, out, nr);

	for (size_t i = 0; !r && i < *nr; i++)
		if (edges[i].to != edges[i].from)
			r = -EBADMSG;
	return r;
}

static const char *const ways_sql[] = MP_SERIES_SQL("way_bucket", "way_chunk", "nr_ways");

const struct mp_series mp_series_ways = {
	.what = "ways of branches",
	.first_stmt = MP_STMT_WAYS,
	.sql = ways_sql,
	.entry_size = sizeof(struct mp_edge_count),
	.entry_bytes_max = MP_EDGE_ENTRY_MAX,
	.nr_max = nr_max,
	.encode = encode,
	.decode = decode_ways,
	.merge = merge,
	.sum = sum,
};

int mp_edges_add(struct mp_store *store, int64_t module, int64_t when_s, bool exact,
		 const struct mp_edge_count *edges, size_t nr, struct mp_err *err)
{
	uint64_t total = 0;

	if (when_s < 0)
		return mp_err_set(err, EINVAL, "edges of a time before 1970");
	for (size_t i = 0; i < nr; i++) {
		if (i && compare(&edges[i - 1], &edges[i]) >= 0)
			return mp_err_set(err, EINVAL, "edges must ascend by address");
		if (edges[i].mispredicted > edges[i].count)
			return mp_err_set(err, EINVAL, "more mispredicted branches than branches");
		if (__builtin_add_overflow(total, edges[i].count, &total) || total > INT64_MAX)
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 transfers",
					  store->path);
	}
	if (!total)
		return 0;
	return mp_series_add(store, &mp_series_edges, module, when_s, exact, edges, nr, total, err);
}

int mp_store_add_edges(struct mp_store *store, int64_t module, int64_t when_s,
		       const struct mp_edge_count *edges, size_t nr, struct mp_err *err)
{
	return mp_edges_add(store, module, when_s, false, edges, nr, err);
}

int mp_store_read_edges(struct mp_store *store, int64_t module, int64_t since_s,
			struct mp_edge_count **out, size_t *nr, struct mp_err *err)
{
	void *entries = NULL;
	int r = mp_series_read(store, &mp_series_edges, module, since_s, &entries, nr, err);

	if (!r)
		*out = entries;
	return r;
}
