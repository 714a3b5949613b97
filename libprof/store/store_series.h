// SPDX-License-Identifier: Apache-2.0
/*
 * store_series - the common part of store_ip_counts and store_edges: entries that begin with a
 * link-time address, kept per module in buckets of days and chunks of text. It decides how
 * they are kept, and when days are folded. A struct mp_series describes the entries.
 * Included by the store's files only.
 * 	module -> bucket  days 20410..20770  (older days, folded)
 * 	          bucket  day  20771         -> chunk vaddr 0x401000 >> 16: encoded entries
 * 	          ...                           chunk ...
 * 	          bucket  day  20777 (today)
 */
#ifndef MP_STORE_SERIES_H
#define MP_STORE_SERIES_H

#include "libprof/store/store_private.h"
#include "libprof/store/store_span.h"

struct mp_series {
	const char *what; /* name in messages */
	enum mp_stmt first_stmt;
	const char *const *sql; /* one statement per enum mp_series_stmt */
	size_t entry_size;	/* the first member is the uint64_t address */
	size_t entry_bytes_max; /* of one encoded entry */
	/* Largest number of entries that @size encoded bytes can hold. */
	size_t (*nr_max)(size_t size);
	size_t (*encode)(uint64_t base, const void *entries, size_t nr, uint8_t *out);
	/* As mp_chunk_decode(). */
	int (*decode)(uint64_t base, const uint8_t *data, size_t size, void *out, size_t *nr);
	/* Merges two ascending arrays and leaves out zeros. Return: 0, -EOVERFLOW. */
	int (*merge)(const void *a, size_t nr_a, const void *b, size_t nr_b, void *out, size_t *nr);
	uint64_t (*sum)(const void *entries, size_t nr); /* of counts */
};

enum mp_series_stmt {
	MP_SERIES_BUCKET_LIST,
	MP_SERIES_BUCKET_ADD,
	MP_SERIES_BUCKET_GROW,
	MP_SERIES_BUCKET_SET,
	MP_SERIES_BUCKET_DELETE,
	MP_SERIES_CHUNK_FIND,
	MP_SERIES_CHUNK_LIST,
	MP_SERIES_CHUNK_ADD,
	MP_SERIES_CHUNK_SET,
	MP_SERIES_CHUNK_DELETE,
};
_Static_assert(MP_SERIES_CHUNK_DELETE + 1 == MP_NR_SERIES_STMT, "a slot for each");

/* The statements for one pair of tables; @nr is the column with the sum of the counts. */
#define MP_SERIES_SQL(bucket, chunk, nr)                                                           \
	{                                                                                          \
		[MP_SERIES_BUCKET_LIST] = "SELECT key, first_day, last_day, " nr                   \
					  ", nr_bytes, exact FROM " bucket                         \
					  " WHERE module = ?1 ORDER BY first_day",                 \
		[MP_SERIES_BUCKET_ADD] = "INSERT INTO " bucket "(module, first_day, last_day, " nr \
					 ", nr_bytes) VALUES(?1, ?2, ?2, 0, 0)",                   \
		[MP_SERIES_BUCKET_GROW] = "UPDATE " bucket " SET " nr " = " nr                     \
					  " + ?2, nr_bytes = nr_bytes + ?3, exact = ?4"            \
					  " WHERE key = ?1",                                       \
		[MP_SERIES_BUCKET_SET] = "UPDATE " bucket                                          \
					 " SET first_day = ?2, last_day = ?3, " nr                 \
					 " = ?4, nr_bytes = ?5, exact = ?6 WHERE key = ?1",        \
		[MP_SERIES_BUCKET_DELETE] = "DELETE FROM " bucket " WHERE key = ?1",               \
		[MP_SERIES_CHUNK_FIND] = "SELECT key, checksum, data FROM " chunk                  \
					 " WHERE bucket = ?1 AND chunk = ?2",                      \
		[MP_SERIES_CHUNK_LIST] = "SELECT chunk, checksum, data FROM " chunk                \
					 " WHERE bucket = ?1 ORDER BY chunk",                      \
		[MP_SERIES_CHUNK_ADD] = "INSERT INTO " chunk "(bucket, chunk, checksum, data)"     \
					" VALUES(?1, ?2, ?3, ?4)",                                 \
		[MP_SERIES_CHUNK_SET] = "UPDATE " chunk                                            \
					" SET checksum = ?3, data = ?4 WHERE key = ?1",            \
		[MP_SERIES_CHUNK_DELETE] = "DELETE FROM " chunk " WHERE bucket = ?1",              \
	}

extern const struct mp_series mp_series_ip_counts; /* store_ip_counts.c */
extern const struct mp_series mp_series_edges;	   /* store_edges.c */
extern const struct mp_series mp_series_copies;	   /* store_edges.c: entries of the same form */
extern const struct mp_series mp_series_ways;	   /* likewise */

/*
 * Adds ascending @entries, with the sum @total, to the day that holds @when_s. @exact: they
 * were counted, not sampled. Return: 0, -ENOENT (no such module).
 */
int mp_series_add(struct mp_store *store, const struct mp_series *series, int64_t module,
		  int64_t when_s, bool exact, const void *entries, size_t nr, uint64_t total,
		  struct mp_err *err);
/* As mp_store_add_ip_counts() and mp_store_add_edges(), which add samples; also for exact counts. */
int mp_ip_counts_add(struct mp_store *store, int64_t module, int64_t when_s, bool exact,
		     const struct mp_ip_count *counts, size_t nr, struct mp_err *err);
int mp_edges_add(struct mp_store *store, int64_t module, int64_t when_s, bool exact,
		 const struct mp_edge_count *edges, size_t nr, struct mp_err *err);
/* Ownership: free(*@out), NULL if there are none. Return: 0, -ENOENT (no such module). */
int mp_series_read(struct mp_store *store, const struct mp_series *series, int64_t module,
		   int64_t since_s, void **out, size_t *nr, struct mp_err *err);
/* The spans of days of the module's buckets, in order. Ownership: free(*@out). */
int mp_series_list_spans(struct mp_store *store, const struct mp_series *series, int64_t module,
			 struct mp_span **out, size_t *nr, struct mp_err *err);
/* As mp_series_read(), from the buckets that lie entirely in @span. */
int mp_series_read_span(struct mp_store *store, const struct mp_series *series, int64_t module,
			const struct mp_span *span, void **out, size_t *nr, struct mp_err *err);
/*
 * Makes one bucket hold all days of @span, so that an addition to one day counts for all.
 * Overlapping buckets are folded together.
 */
int mp_series_widen(struct mp_store *store, const struct mp_series *series, int64_t module,
		    const struct mp_span *span, struct mp_err *err);
/* The sum of all counts of a module, from the sums in its buckets. */
int mp_series_total(struct mp_store *store, const struct mp_series *series, int64_t module,
		    uint64_t *total, struct mp_err *err);
/* Return: 0, -ENOENT (no such module). */
int mp_series_text_size(struct mp_store *store, int64_t module, uint64_t *text_size,
			struct mp_err *err);
/* Sums over the chunks of one bucket; verifies every checksum. */
int mp_series_sum_bucket(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 uint64_t *total, uint64_t *nr_bytes, struct mp_err *err);

#endif
