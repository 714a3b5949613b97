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

/* The same bytes, which are checked and not decoded. */
int mp_fleet_bytes(struct mp_store *store, sqlite3_stmt *stmt, int column, const uint8_t **data,
		   size_t *size, struct mp_err *err);

/*
 * mp_fleet_run - runs a statement whose parameters are the numbers behind @err. @which: it is kept from call to call;
 * MP_NR_STMT: it is not. @out: gets the first @nr_out columns of the first row, or zeros. Return: 1: there was a row; 0;
 * -errno.
 */
#define mp_fleet_run(store, which, sql, out, nr_out, err, ...)                                     \
	mp_fleet_run_with(store, which, sql, out, nr_out, err, MP_FLEET_NUMBERS(__VA_ARGS__))
#define MP_FLEET_NUMBERS(...)                                                                      \
	(const int64_t[]){__VA_ARGS__},                                                            \
		(int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
int mp_fleet_run_with(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t *out,
		      int nr_out, struct mp_err *err, const int64_t *numbers, int nr);
/* Calls @row for each row of @sql, until it does not return 0. Return: that, -errno. */
#define mp_fleet_each(store, sql, row, arg, err, ...)                                              \
	mp_fleet_each_with(store, sql, row, arg, err, MP_FLEET_NUMBERS(__VA_ARGS__))
int mp_fleet_each_with(struct mp_store *store, const char *sql,
		       int (*row)(struct mp_store *store, sqlite3_stmt *stmt, void *arg,
				  struct mp_err *err),
		       void *arg, struct mp_err *err, const int64_t *numbers, int nr);

struct mp_fleet_base_row {
	enum mp_fleet_kind kind;
	enum mp_fleet_origin origin;
	int64_t module, chunk;
	struct mp_span span;
	int64_t session; /* that has the samples in its ledger; 0: another one */
};
int mp_fleet_base_add(struct mp_store *store, const struct mp_fleet_base_row *row,
		      const void *entries, size_t nr, struct mp_err *err);
/* Writes rows of one kind to the base: a mp_fleet_row_fn, which sets the row's chunk. */
struct mp_fleet_base_writer {
	struct mp_store *store;
	struct mp_fleet_base_row row;
};
int mp_fleet_base_write(void *writer, int64_t chunk, uint64_t total, const uint8_t *data,
			size_t size, struct mp_err *err);

#endif
