// SPDX-License-Identifier: Apache-2.0
/*
 * store_fleet_collect - finds the counts that the fleet's server lacks; see store_fleet.h.
 *
 * The counts of a bucket of days only grow. So a bucket whose sum is what was sent of its days has
 * not changed, and is not read. Of a changed bucket, a chunk is sent if its bytes hash to something
 * new. The base (fleet_base) is subtracted first. When local days are folded into one bucket, their
 * sums add up, and nothing is sent. If counts then come late to the folded days, the rows of the
 * bucket replace those of its days on the server (last_day tells up to which day).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "libprof/store/fleet/fleet_private.h"
#include "libprof/store/fleet/fleet_whole.h"

/* Modules per transaction: the collector waits meanwhile. */
#define MODULES_MAX 256
/* Ends the rows of a bucket: the batch has no room. */
#define FULL 1

/*
 * A sparing push sends counts of today early if the server has no other days of the module, if there
 * are at least so many, and if they are so many times as many as those that were sent. Each row holds
 * all counts of its day, so that sending them each hour would send most of them twenty times.
 */
#define EARLY_COUNTS 64
#define EARLY_GROWTH 8

struct collect {
	struct mp_store *store;
	struct mp_fleet_batch *batch;
	const struct mp_module *module;
	size_t max_bytes;
	int64_t seq;
	bool full;
};

/* ---- notes about what was sent ------------------------------------------------------------- */

static int sum_sent(struct collect *c, enum mp_fleet_kind kind, const struct mp_span *span,
		    int64_t *nr, uint64_t *total, struct mp_err *err)
{
	int64_t out[2];
	int r = mp_fleet_run(c->store, MP_STMT_FLEET_BUCKET_SUM,
			     "SELECT count(*), sum(total) FROM fleet_bucket WHERE module = ?1 AND"
			     " kind = ?2 AND first_day >= ?3 AND first_day <= ?4",
			     out, 2, err, c->module->key, kind, span->first_day, span->last_day);

	*nr = out[0];
	*total = (uint64_t)out[1];
	return r < 0 ? r : 0;
}

/* All of the days in @span is sent, with the sum @total, the last of it in the batch @seq. */
static int note_bucket(struct collect *c, enum mp_fleet_kind kind, const struct mp_span *span,
		       uint64_t total, int64_t seq, struct mp_err *err)
{
	int r = mp_fleet_run(c->store, MP_STMT_FLEET_BUCKET_DROP,
			     "DELETE FROM fleet_bucket WHERE module = ?1 AND kind = ?2 AND"
			     " first_day >= ?3 AND first_day <= ?4",
			     NULL, 0, err, c->module->key, kind, span->first_day, span->last_day);

	/* The hashes of the first day stay: a chunk without counts of later days keeps its bytes. */
	if (!r && span->last_day > span->first_day)
		r = mp_fleet_run(c->store, MP_STMT_FLEET_CHUNK_DROP,
				 "DELETE FROM fleet_chunk WHERE module = ?1 AND kind = ?2 AND"
				 " first_day > ?3 AND first_day <= ?4",
				 NULL, 0, err, c->module->key, kind, span->first_day,
				 span->last_day);
	return r ? r
		 : mp_fleet_run(c->store, MP_STMT_FLEET_BUCKET_PUT,
				"INSERT INTO fleet_bucket(kind, module, first_day, last_day,"
				" total, seq) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
				NULL, 0, err, kind, c->module->key, span->first_day, span->last_day,
				(int64_t)total, seq);
}

static int is_sent(struct collect *c, const struct mp_fleet_row *row, uint64_t hash, bool *sent,
		   struct mp_err *err)
{
	int64_t found;
	int r = mp_fleet_run(c->store, MP_STMT_FLEET_CHUNK_FIND,
			     "SELECT hash FROM fleet_chunk WHERE module = ?1 AND kind = ?2 AND"
			     " first_day = ?3 AND chunk = ?4",
			     &found, 1, err, c->module->key, row->kind, row->first_day, row->chunk);

	*sent = r > 0 && (uint64_t)found == hash;
	return r < 0 ? r : 0;
}

static int note_chunk(struct collect *c, const struct mp_fleet_row *row, uint64_t hash,
		      struct mp_err *err)
{
	return mp_fleet_run(c->store, MP_STMT_FLEET_CHUNK_PUT,
			    "REPLACE INTO fleet_chunk(kind, module, first_day, chunk, hash, seq)"
			    " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
			    NULL, 0, err, row->kind, c->module->key, row->first_day, row->chunk,
			    (int64_t)hash, c->seq);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int batch_module(struct collect *c, uint32_t *index, struct mp_err *err)
{
	struct mp_fleet_batch *b = c->batch;
	struct mp_module *m;
	int r;

	if (b->nr_modules && b->modules[b->nr_modules - 1].key == c->module->key) {
		*index = (uint32_t)b->nr_modules - 1;
		return 0;
	}
	r = mp_store_grow(b->modules, b->max_modules, b->nr_modules + 1, err);
	if (r)
		return r;
	m = &b->modules[b->nr_modules];
	*m = *c->module;
	m->path = strdup(c->module->path);
	if (!m->path)
		return mp_err_set(err, ENOMEM, "out of memory");
	*index = (uint32_t)b->nr_modules++;
	return 0;
}

static int append(struct collect *c, struct mp_fleet_row *row, const uint8_t *data, uint64_t hash,
		  struct mp_err *err)
{
	struct mp_fleet_batch *b = c->batch;
	struct mp_store_array bytes = {b->bytes, b->max_bytes};
	int r = mp_store_grow(b->rows, b->max_rows, b->nr_rows + 1, err);

	if (!r)
		r = mp_store_array_reserve(&bytes, b->nr_bytes + row->size, err);
	b->bytes = bytes.data;
	b->max_bytes = bytes.size;
	if (!r)
		r = batch_module(c, &row->module, err);
	if (!r)
		r = note_chunk(c, row, hash, err);
	if (r)
		return r;
	row->at = b->nr_bytes;
	memcpy(b->bytes + row->at, data, row->size);
	b->nr_bytes += row->size;
	b->rows[b->nr_rows++] = *row;
	return 0;
}

/* The row, if the server lacks it. Sets @c->full instead if there is no room. */
static int offer(struct collect *c, struct mp_fleet_row *row, const uint8_t *data,
		 struct mp_err *err)
{
	uint64_t hash = XXH3_64bits_withSeed(data, row->size, row->exact);
	bool sent;
	int r = is_sent(c, row, hash, &sent, err);

	if (r || sent)
		return r;
	if (row->size > MP_FLEET_ROW_BYTES_MAX || row->first_day < 0 ||
	    row->first_day > INT32_MAX) {
		c->batch->nr_too_large++;
		return 0;
	}
	if (c->batch->nr_rows && (c->batch->nr_bytes + row->size > c->max_bytes ||
				  c->batch->nr_rows == MP_FLEET_BATCH_ROWS_MAX)) {
		c->full = true;
		return 0;
	}
	return append(c, row, data, hash, err);
}

/* Is it time to send the days in @span, with the sum @total, of which @sent was sent? */
static int is_due(struct collect *c, enum mp_fleet_kind kind, const struct mp_span *span,
		  uint64_t sent, uint64_t total, bool *due, struct mp_err *err)
{
	const struct mp_span before = {0, c->batch->today - 1, false};
	int64_t nr_before;
	uint64_t unused;
	int r;

	*due = !c->batch->sparing || c->batch->today < span->first_day ||
	       c->batch->today > span->last_day;
	if (*due || total < EARLY_COUNTS || total / EARLY_GROWTH < sent)
		return 0;
	r = sum_sent(c, kind, &before, &nr_before, &unused, err);
	*due = !nr_before;
	return r;
}

struct rows {
	struct collect *collect;
	struct mp_fleet_row row;
};

static int collect_row(void *arg, int64_t chunk, uint64_t total, const uint8_t *data, size_t size,
		       struct mp_err *err)
{
	const struct rows *rows = arg;
	struct mp_fleet_row row = rows->row;
	int r;

	row.chunk = chunk;
	row.total = total;
	row.size = size;
	r = offer(rows->collect, &row, data, err);
	return r || !rows->collect->full ? r : FULL;
}

static int collect_rows(struct collect *c, enum mp_fleet_kind kind, const struct mp_bucket *bucket,
			struct mp_err *err)
{
	struct rows rows = {c,
			    {.kind = kind,
			     .first_day = bucket->first_day,
			     .last_day = bucket->last_day,
			     .exact = kind < MP_NR_FLEET_SERIES && bucket->exact}};
	size_t max = c->batch->when == MP_FLEET_DAILY ? MP_FLEET_TREE_BYTES : MP_CALLS_BYTES_MAX;
	int r = mp_fleet_each_row(c->store, kind, c->module->key, bucket, max, collect_row, &rows,
				  err);

	return r == FULL ? 0 : r;
}

/* A day whose evidence grows on is not sent yet. One that the clock never reached is sent at once. */
static bool is_wanted(const struct collect *c, enum mp_fleet_kind kind,
		      const struct mp_bucket *bucket)
{
	return kind < MP_NR_FLEET_SERIES || c->batch->when == MP_FLEET_ALWAYS ||
	       (c->batch->when == MP_FLEET_DAILY && bucket->last_day != c->batch->today);
}

static int collect_bucket(struct collect *c, enum mp_fleet_kind kind,
			  const struct mp_bucket *bucket, struct mp_err *err)
{
	struct mp_span span = {bucket->first_day, bucket->last_day, false};
	uint64_t base, sent;
	int64_t nr_sent;
	bool due;
	int r;

	if (!is_wanted(c, kind, bucket))
		return 0;
	r = mp_fleet_base_total(c->store, kind, c->module->key, &span, &base, err);
	if (!r)
		r = sum_sent(c, kind, &span, &nr_sent, &sent, err);
	if (!r && base > bucket->total)
		r = mp_store_damaged(c->store, "counts of a fleet that its days do not have", err);
	if (r)
		return r;
	if (sent == bucket->total - base)
		return nr_sent > 1 ? note_bucket(c, kind, &span, sent, 0, err) : 0;
	r = is_due(c, kind, &span, sent, bucket->total - base, &due, err);
	if (r || !due)
		return r;
	r = collect_rows(c, kind, bucket, err);
	if (r || c->full)
		return r;
	return note_bucket(c, kind, &span, bucket->total - base, c->seq, err);
}

static int collect_module(struct collect *c, struct mp_err *err)
{
	int r = 0;

	for (int kind = 0; kind < MP_NR_FLEET_KINDS && !r && !c->full; kind++) {
		struct mp_bucket *buckets = NULL;
		size_t nr = 0;

		r = mp_fleet_buckets(c->store, (enum mp_fleet_kind)kind, c->module->key, &buckets,
				     &nr, err);
		for (size_t i = 0; i < nr && !r && !c->full; i++)
			r = collect_bucket(c, (enum mp_fleet_kind)kind, &buckets[i], err);
		free(buckets);
	}
	return r;
}

/* ---- batch --------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
	const struct mp_module *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int collect_modules(struct collect *c, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0, nr_seen = 0;
	int r = mp_store_list_modules(c->store, 0, &modules, &nr, err);

	if (!r && nr)
		qsort(modules, nr, sizeof(*modules), compare_keys);
	c->batch->ended = true;
	for (size_t i = 0; i < nr && !r; i++) {
		if (modules[i].key < c->batch->from)
			continue;
		if (nr_seen++ == MODULES_MAX || (c->batch->alone && c->batch->nr_rows)) {
			c->batch->ended = false;
			c->batch->from = modules[i].key;
			break;
		}
		c->module = &modules[i];
		r = collect_module(c, err);
		if (c->full) {
			c->batch->ended = false;
			c->batch->from = modules[i].key;
			break;
		}
	}
	mp_store_free_modules(modules, nr);
	return r;
}

static void empty(struct mp_fleet_batch *batch)
{
	for (size_t i = 0; i < batch->nr_modules; i++)
		free(batch->modules[i].path);
	batch->nr_modules = batch->nr_rows = batch->nr_bytes = 0;
	batch->token = 0;
}

void mp_fleet_batch_fini(struct mp_fleet_batch *batch)
{
	empty(batch);
	free(batch->modules);
	free(batch->rows);
	free(batch->bytes);
	memset(batch, 0, sizeof(*batch));
}

/* Attempts of one batch that may still be on their way; older ones have arrived, or never will. */
#define PENDING_MAX 64

/* Notes which token is on its way: after a power cut it must be known. */
static int note_pending(struct collect *c, int64_t *token, struct mp_err *err)
{
	int r;

	for (*token = 0; !*token; *token &= INT64_MAX)
		if (getrandom(token, sizeof(*token), 0) != (ssize_t)sizeof(*token))
			return mp_err_set(err, EIO, "no random numbers: %s", strerror(errno));
	r = mp_fleet_run(c->store, MP_NR_STMT,
			 "DELETE FROM fleet_pending WHERE key <="
			 " (SELECT max(key) FROM fleet_pending) - ?1",
			 NULL, 0, err, PENDING_MAX);
	return r ? r
		 : mp_fleet_run(c->store, MP_NR_STMT, "INSERT INTO fleet_pending(token) VALUES(?1)",
				NULL, 0, err, *token);
}

static int collect(struct collect *c, struct mp_err *err)
{
	static const uint8_t machine[MP_FLEET_MACHINE_BYTES];
	struct mp_fleet_batch *batch = c->batch;
	struct mp_fleet_epoch epoch;
	bool has;
	int r = mp_fleet_epoch_read(c->store, machine, &has, &epoch, err);

	if (!r && !has)
		r = mp_err_set(err, EINVAL, "%s: no epoch", c->store->path);
	if (r)
		return r;
	c->seq = epoch.seq + 1;
	r = collect_modules(c, err);
	if (r || !batch->nr_rows)
		return r;
	batch->seq = c->seq;
	batch->previous = epoch.token;
	return note_pending(c, &batch->token, err);
}

int mp_fleet_collect(struct mp_store *store, struct mp_fleet_batch *batch, size_t max_bytes,
		     struct mp_err *err)
{
	struct collect c = {.store = store, .batch = batch, .max_bytes = max_bytes};
	bool began;
	int r;

	empty(batch);
	r = mp_store_enter_durably(store, &began, err);
	if (r)
		return r;
	r = collect(&c, err);
	r = mp_store_leave(store, began, r, err);
	if (r)
		empty(batch);
	return r;
}
