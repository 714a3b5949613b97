// SPDX-License-Identifier: Apache-2.0
/* fleet_private - what the files of fleet/ share. */
#ifndef MP_FLEET_PRIVATE_H
#define MP_FLEET_PRIVATE_H

#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/store_bucket.h"
#include "libprof/store/store_chunk.h"

/* The module's buckets of @kind, in order of days. Ownership: free(*@out). */
int mp_fleet_buckets(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		     struct mp_bucket **out, size_t *nr, struct mp_err *err);
/* @from -= @what, in place. Return: 0, -EBADMSG. */
int mp_fleet_subtract(struct mp_store *store, enum mp_fleet_kind kind, void *from, size_t *nr,
		      const void *what, size_t nr_what, struct mp_err *err);
/* Reads (checksum, data) at @column of @stmt. Return: 0, -EBADMSG, -ENOMEM. */
int mp_fleet_decode(struct mp_store *store, enum mp_fleet_kind kind, int64_t chunk,
		    sqlite3_stmt *stmt, int column, struct mp_store_array *out, size_t *nr,
		    struct mp_err *err);

/* Parameters 1 to 4 of @stmt: the module, the kind, the first and the last day. */
static inline void mp_fleet_bind_days(sqlite3_stmt *stmt, int64_t module, enum mp_fleet_kind kind,
				      int64_t from, int64_t to)
{
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, kind);
	sqlite3_bind_int64(stmt, 3, from);
	sqlite3_bind_int64(stmt, 4, to);
}

struct mp_fleet_base_row {
	enum mp_fleet_kind kind;
	enum mp_fleet_origin origin;
	int64_t module, chunk;
	struct mp_span span;
	int64_t session; /* that has the samples in its ledger; 0: another one */
};
int mp_fleet_base_add(struct mp_store *store, const struct mp_fleet_base_row *row,
		      const void *entries, size_t nr, struct mp_err *err);

#endif
