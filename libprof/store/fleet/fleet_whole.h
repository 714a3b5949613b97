// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_whole - kinds of evidence that the store does not keep in chunks of text: paths, and trees of
 * calling contexts and of sampled calls. Reads what is this database's own of some days, and replaces what
 * was pulled. Called by the files of fleet/.
 */
#ifndef MP_FLEET_WHOLE_H
#define MP_FLEET_WHOLE_H

#include "libprof/store/contexts/contexts_rows.h"
#include "libprof/store/fleet/fleet_paths.h"
#include "libprof/store/fleet/fleet_private.h"

static inline bool mp_fleet_is_tree(enum mp_fleet_kind kind)
{
	return kind == MP_FLEET_CONTEXTS || kind == MP_FLEET_CALLS;
}

static inline enum mp_context_table mp_fleet_table(enum mp_fleet_kind kind)
{
	return kind == MP_FLEET_CALLS ? MP_CALLS : MP_CONTEXTS;
}

/* Gets the chunk of a row, its sum and its bytes, which are valid during the call. */
typedef int mp_fleet_row_fn(void *arg, int64_t chunk, uint64_t total, const uint8_t *data,
			    size_t size, struct mp_err *err);
/*
 * mp_fleet_each_row - gives the rows of one bucket, without the base: one for a tree, one for each chunk of
 * others, and none for what is not this database's own. @tree_max: fold a tree to so many bytes; 0: not at
 * all. Stops when @fn does not return 0. Return: that, or -errno.
 */
int mp_fleet_each_row(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		      const struct mp_bucket *bucket, size_t tree_max, mp_fleet_row_fn *fn,
		      void *arg, struct mp_err *err);
/* The same for @paths, which it sorts by chunks. */
int mp_fleet_each_path_chunk(struct mp_path_count *paths, size_t nr, mp_fleet_row_fn *fn, void *arg,
			     struct mp_err *err);
/* Takes what was pulled of @kind, on the days of @span, out of the module's days. */
int mp_fleet_take_whole(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
			const struct mp_span *span, struct mp_err *err);
/* For mp_fleet_check(): are these the bytes of a row with the sum @total? */
int mp_fleet_check_whole(struct mp_store *store, enum mp_fleet_kind kind, int64_t chunk,
			 const uint8_t *data, size_t size, uint64_t total, struct mp_err *err);

#endif
