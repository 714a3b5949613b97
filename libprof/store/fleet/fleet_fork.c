// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_fork - what is done to the whole base of a fleet's counts: begins it, keeps own counts,
 * checks it.
 */

#include <stdlib.h>

#include "libprof/store/fleet/fleet_private.h"
#include "libprof/store/fleet/fleet_whole.h"

static int fork_module(struct mp_store *store, int64_t module, struct mp_err *err)
{
	int r = 0;

	for (int kind = 0; kind < MP_NR_FLEET_KINDS && !r; kind++) {
		struct mp_fleet_base_writer fork = {store,
						    {.kind = (enum mp_fleet_kind)kind,
						     .module = module,
						     .origin = MP_FLEET_FORK}};
		struct mp_bucket *buckets = NULL;
		size_t nr = 0;

		r = mp_fleet_buckets(store, fork.row.kind, module, &buckets, &nr, err);
		/* Nothing is folded: a base that is folded more than its tree cannot be subtracted later. */
		for (size_t i = 0; i < nr && !r; i++) {
			fork.row.span =
				(struct mp_span){buckets[i].first_day, buckets[i].last_day, false};
			r = mp_fleet_each_row(store, fork.row.kind, module, &buckets[i], 0,
					      mp_fleet_base_write, &fork, err);
		}
		free(buckets);
	}
	return r;
}

int mp_fleet_base_fork(struct mp_store *store, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int r = mp_fleet_run(store, MP_NR_STMT, "DELETE FROM fleet_base WHERE origin = ?1", NULL, 0,
			     err, MP_FLEET_FORK);

	if (!r)
		r = mp_store_list_modules(store, 0, &modules, &nr, err);
	for (size_t i = 0; i < nr && !r; i++)
		r = fork_module(store, modules[i].key, err);
	mp_store_free_modules(modules, nr);
	return r;
}

struct own {
	struct mp_module *modules;
	size_t nr;
	int64_t since_s;
};

static int take_pulled(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	const struct own *own = arg;
	int64_t total = sqlite3_column_int64(stmt, 3);

	(void)store;
	(void)err;
	for (size_t i = 0; i < own->nr && total > 0; i++) {
		struct mp_module *m = &own->modules[i];
		uint64_t *nr = sqlite3_column_int64(stmt, 1) == MP_FLEET_COUNTS ? &m->nr_samples
										: &m->nr_transfers;

		if (m->key == sqlite3_column_int64(stmt, 0) &&
		    mp_day_wanted(sqlite3_column_int64(stmt, 2), own->since_s))
			*nr -= (uint64_t)total < *nr ? (uint64_t)total : *nr;
	}
	return 0;
}

int mp_fleet_keep_own(struct mp_store *store, int64_t since_s, struct mp_module *modules, size_t nr,
		      struct mp_err *err)
{
	struct own own = {modules, nr, since_s};

	return mp_fleet_each(store,
			     "SELECT module, kind, last_day, total FROM fleet_base"
			     " WHERE origin = ?1 AND kind <= ?2",
			     take_pulled, &own, err, MP_FLEET_PULLED, MP_FLEET_EDGES);
}

static int check_row(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	struct mp_store_array *entries = arg;
	int64_t kind = sqlite3_column_int64(stmt, 0), origin = sqlite3_column_int64(stmt, 1);
	const struct mp_series *series;
	const uint8_t *data;
	size_t nr;
	int r;

	if (kind < 0 || kind >= MP_NR_FLEET_KINDS || origin < 0 || origin > MP_FLEET_PULLED)
		return mp_store_damaged(store, "impossible counts of a fleet", err);
	if (kind >= MP_NR_FLEET_SERIES) {
		r = mp_fleet_bytes(store, stmt, 4, &data, &nr, err);
		return r ? r
			 : mp_fleet_check_whole(store, (enum mp_fleet_kind)kind,
						sqlite3_column_int64(stmt, 2), data, nr,
						(uint64_t)sqlite3_column_int64(stmt, 3), err);
	}
	series = mp_fleet_series((enum mp_fleet_kind)kind);
	r = mp_fleet_decode(store, (enum mp_fleet_kind)kind, sqlite3_column_int64(stmt, 2), stmt, 4,
			    entries, &nr, err);
	if (!r && series->sum(entries->data, nr) != (uint64_t)sqlite3_column_int64(stmt, 3))
		r = mp_store_damaged(store, "counts of a fleet that do not add up", err);
	return r;
}

int mp_fleet_check(struct mp_store *store, struct mp_err *err)
{
	struct mp_store_array entries = {0};
	int r = mp_store_check_none(store,
				    "SELECT count(*) FROM fleet_base WHERE module NOT IN"
				    " (SELECT key FROM module)",
				    "counts of a fleet without a module", err);

	if (r)
		return r;
	r = mp_fleet_each(store,
			  "SELECT kind, origin, chunk, total, checksum, data FROM fleet_base"
			  " WHERE ?1",
			  check_row, &entries, err, 1);
	free(entries.data);
	return r;
}
