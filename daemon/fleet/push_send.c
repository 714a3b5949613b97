// SPDX-License-Identifier: Apache-2.0
/* push_send - the statements of a push; see push_send.h. */
#include "daemon/fleet/push_send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg_params.h"

/* The server takes days of the last 400, and no later one than its own. */
#define DAYS_BACK 399

void md_push_sender_fini(struct md_push_sender *sender)
{
	for (size_t i = 0; i < sizeof(sender->arrays) / sizeof(sender->arrays[0]); i++)
		free(sender->arrays[i].bytes);
	for (size_t i = 0; i < MD_PUSH_COLUMNS; i++)
		free(sender->columns[i].bytes);
	free(sender->data.bytes);
	free(sender->sizes);
	md_packer_fini(&sender->packer);
	PQfinish(sender->conn);
	memset(sender, 0, sizeof(*sender));
}

/* ---- statements ---------------------------------------------------------------------------- */

int md_push_today(struct md_push_sender *sender, struct mp_err *err)
{
	PGresult *result;
	int r = md_pg_run(sender->conn, "SELECT fleet.today()", NULL, "ask for the server's day",
			  &result, err);

	if (r)
		return r;
	if (PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 4)
		sender->today = (int)md_pg_get(PQgetvalue(result, 0, 0), 4);
	else
		r = mp_err_set(err, EPROTO, "the server does not tell its day");
	PQclear(result);
	return r;
}

int md_push_ask_epoch(struct md_push_sender *sender, const uint8_t *name, bool *has, int64_t *seq,
		      int64_t *token, struct mp_err *err)
{
	struct md_pg_params p = {0};
	PGresult *result;
	int r;

	*has = false;
	md_pg_add_bytes(&p, MD_PG_BYTEA, name, MP_FLEET_EPOCH_BYTES);
	r = md_pg_run(sender->conn, "SELECT seq, token FROM fleet.epoch($1)", &p,
		      "ask what the server has", &result, err);
	if (r)
		return r;
	if (PQntuples(result)) {
		*has = PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 8 &&
		       PQgetlength(result, 0, 1) == 8;
		if (*has) {
			*seq = md_pg_get(PQgetvalue(result, 0, 0), 8);
			*token = md_pg_get(PQgetvalue(result, 0, 1), 8);
		}
		if (!*has || *seq <= 0 || *seq >= INT64_MAX / 2 || *token <= 0)
			r = mp_err_set(err, EPROTO, "the server has an impossible epoch");
	}
	PQclear(result);
	return r;
}

/* ---- batch --------------------------------------------------------------------------------- */

static int begin_batch(PGconn *conn, const uint8_t *epoch, const struct mp_fleet_batch *batch,
		       struct mp_err *err)
{
	struct md_pg_params p = {0};

	md_pg_add_bytes(&p, MD_PG_BYTEA, epoch, MP_FLEET_EPOCH_BYTES);
	md_pg_add_number(&p, MD_PG_INT8, batch->previous);
	md_pg_add_number(&p, MD_PG_INT8, batch->token);
	md_pg_add_number(&p, MD_PG_INT8, batch->seq);
	return md_pg_run(conn, "SELECT fleet.batch($1, $2, $3, $4)", &p, "begin a batch", NULL,
			 err);
}

/* Empties the arrays, and gives them the @types of their elements. */
static struct md_pg_array *start_arrays(struct md_push_sender *sender, const enum md_pg_type *types,
					size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		sender->arrays[i].type = types[i];
		md_pg_array_clear(&sender->arrays[i]);
	}
	return sender->arrays;
}

static int send_modules(struct md_push_sender *sender, const struct mp_fleet_batch *batch,
			const struct md_file_names *names, struct mp_err *err)
{
	static const enum md_pg_type types[] = {MD_PG_BYTEA, MD_PG_INT2, MD_PG_INT8, MD_PG_TEXT};
	static const enum md_pg_type lists[] = {MD_PG_BYTEAS, MD_PG_INT2S, MD_PG_INT8S,
						MD_PG_TEXTS};
	struct md_pg_array *a = start_arrays(sender, types, 4);
	struct md_pg_params p = {0};
	int r = 0;

	for (size_t i = 0; i < batch->nr_modules; i++) {
		const struct mp_module *m = &batch->modules[i];
		uint8_t key[MD_MODULE_KEY_MAX];
		char buf[MD_NAME_SIZE];
		const char *name = md_file_name(names, m->path, buf);

		md_pg_array_add(&a[0], key, md_module_key(&m->id, key));
		md_pg_array_add_number(&a[1], m->kind);
		md_pg_array_add_number(&a[2], (int64_t)m->text_size);
		if (name)
			md_pg_array_add(&a[3], name, strlen(name));
		else
			md_pg_array_add_null(&a[3]);
	}
	for (int i = 0; i < 4 && !r; i++)
		r = md_pg_add_array(&p, lists[i], &a[i], err);
	if (!r)
		r = md_pg_run(sender->conn, "SELECT fleet.push_modules($1, $2, $3, $4)", &p,
			      "send modules", NULL, err);
	return r;
}

/*
 * Days are what the host's clock said. The server has its own clock: a day that this host has too early
 * or too late is called the nearest one that the server takes.
 */
static int64_t clamp_day(int64_t day, int today)
{
	return day > today ? today : day < today - DAYS_BACK ? today - DAYS_BACK : day;
}

/*
 * The numbers of rows, in the order of push_rows(), but for the last one. A row's module is its place in the
 * list of the batch's modules.
 */
enum {
	COLUMN_MODULE,
	COLUMN_KIND,
	COLUMN_FIRST_DAY,
	COLUMN_UPTO,
	COLUMN_LAST_DAY,
	COLUMN_CHUNK,
	COLUMN_EXACT,
	COLUMN_TOTAL,
	COLUMN_SIZE /* of the data */
};
_Static_assert(COLUMN_SIZE + 1 == MD_PUSH_COLUMNS, "columns");

static int64_t number_of(const struct md_push_sender *sender, const struct mp_fleet_batch *batch,
			 size_t i, int column)
{
	const struct mp_fleet_row *row = &batch->rows[i];

	switch (column) {
	case COLUMN_MODULE: return row->module + 1;
	case COLUMN_KIND: return row->kind;
	case COLUMN_FIRST_DAY: return row->first_day;
	case COLUMN_UPTO: return row->last_day < INT32_MAX ? row->last_day : INT32_MAX;
	case COLUMN_LAST_DAY: return clamp_day(row->last_day, sender->today);
	case COLUMN_CHUNK: return row->chunk;
	case COLUMN_EXACT: return row->exact;
	case COLUMN_TOTAL: return (int64_t)row->total;
	default: return sender->sizes[i];
	}
}

/*
 * Adds one column as the parameter @p->nr + 1, and prints the expression that makes it an array again. Most
 * rows of a push are of one kind and one day: a number that all rows have is sent once. Other numbers have as
 * many bytes as the largest one needs. So a row takes some 9 bytes beside its counts; with arrays of
 * PostgreSQL it would take 95.
 */
static int add_column(struct md_push_sender *sender, struct md_pg_params *p,
		      const struct mp_fleet_batch *batch, int column, FILE *sql, struct mp_err *err)
{
	int64_t first = number_of(sender, batch, 0, column);
	struct mp_varint_writer *bytes = &sender->columns[column];
	uint64_t all = 0;
	bool same = true;
	size_t width = 1;

	for (size_t i = 0; i < batch->nr_rows; i++) {
		same &= number_of(sender, batch, i, column) == first;
		all |= (uint64_t)number_of(sender, batch, i, column);
	}
	if (same) {
		fprintf(sql, "array_fill($%d::bigint,ARRAY[%zu])", p->nr + 1, batch->nr_rows);
		md_pg_add_number(p, MD_PG_INT8, first);
		return 0;
	}
	while (width < 8 && all >> 8 * width)
		width++;
	bytes->size = 0;
	for (size_t i = 0; i < batch->nr_rows; i++) {
		char number[8];

		md_pg_put(number, number_of(sender, batch, i, column), width);
		mp_varint_put_bytes(bytes, number, width);
	}
	if (bytes->failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	fprintf(sql, "fleet.numbers($%d,%zu)", p->nr + 1, width);
	md_pg_add_bytes(p, MD_PG_BYTEA, bytes->bytes, bytes->size);
	return 0;
}

/* Joins the data of all rows. Counts are packed where this makes them smaller. */
static int join_data(struct md_push_sender *sender, const struct mp_fleet_batch *batch,
		     struct mp_err *err)
{
	sender->data.size = 0;
	if (!sender->sizes)
		sender->sizes = calloc(MP_FLEET_BATCH_ROWS_MAX, sizeof(*sender->sizes));
	for (size_t i = 0; i < batch->nr_rows && sender->sizes; i++) {
		const struct mp_fleet_row *row = &batch->rows[i];
		const uint8_t *data = batch->bytes + row->at;
		size_t size = row->size;
		long packed = row->kind == MP_FLEET_COUNTS
				      ? md_counts_pack(&sender->packer, data, size)
				      : 0;

		if (packed < 0)
			return mp_err_set(err, (int)-packed, "cannot pack the counts");
		if (packed) {
			data = sender->packer.bytes;
			size = (size_t)packed;
		}
		sender->sizes[i] = (int64_t)size;
		mp_varint_put_bytes(&sender->data, data, size);
	}
	if (!sender->sizes || sender->data.failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* Modules are the parameter 3, data the last one. */
static int add_columns(struct md_push_sender *sender, struct md_pg_params *p,
		       const struct mp_fleet_batch *batch, FILE *sql, struct mp_err *err)
{
	static const char *const types[MD_PUSH_COLUMNS] = {
		NULL, "smallint", "int", "int", "int", "bigint", "boolean", "bigint", NULL};
	static const enum md_pg_type type[] = {MD_PG_BYTEA};
	struct md_pg_array *modules = start_arrays(sender, type, 1);
	uint8_t key[MD_MODULE_KEY_MAX];
	int r;

	for (size_t i = 0; i < batch->nr_modules; i++)
		md_pg_array_add(modules, key, md_module_key(&batch->modules[i].id, key));
	r = md_pg_add_array(p, MD_PG_BYTEAS, modules, err);
	fputs("SELECT fleet.push_rows($1,$2,fleet.pick($3,", sql);
	if (!r)
		r = add_column(sender, p, batch, COLUMN_MODULE, sql, err);
	fputc(')', sql);
	for (int column = COLUMN_KIND; column < COLUMN_SIZE && !r; column++) {
		fputc(',', sql);
		r = add_column(sender, p, batch, column, sql, err);
		/* No cast leads from a bigint to a boolean. */
		fprintf(sql, column == COLUMN_EXACT ? "::int[]::%s[]" : "::%s[]", types[column]);
	}
	fputs(",fleet.slices(", sql);
	if (!r)
		r = add_column(sender, p, batch, COLUMN_SIZE, sql, err);
	fprintf(sql, ",$%d))", p->nr + 1);
	md_pg_add_bytes(p, MD_PG_BYTEA, sender->data.bytes, sender->data.size);
	return r;
}

static int send_rows(struct md_push_sender *sender, const uint8_t *epoch,
		     const struct mp_fleet_batch *batch, struct mp_err *err)
{
	struct md_pg_params p = {0};
	char statement[1024] = "";
	FILE *sql;
	int r = join_data(sender, batch, err);

	if (r)
		return r;
	sql = fmemopen(statement, sizeof(statement), "w");
	if (!sql)
		return mp_err_set(err, ENOMEM, "out of memory");
	md_pg_add_bytes(&p, MD_PG_BYTEA, epoch, MP_FLEET_EPOCH_BYTES);
	md_pg_add_number(&p, MD_PG_INT8, batch->seq);
	r = add_columns(sender, &p, batch, sql, err);
	fclose(sql);
	return r ? r : md_pg_run(sender->conn, statement, &p, "send counts", NULL, err);
}

int md_push_send(struct md_push_sender *sender, const uint8_t *epoch,
		 const struct mp_fleet_batch *batch, const struct md_file_names *names,
		 size_t *nr_bytes, struct mp_err *err)
{
	int r = md_pg_run(sender->conn, "BEGIN", NULL, "begin a batch", NULL, err);

	if (r)
		return r;
	r = begin_batch(sender->conn, epoch, batch, err);
	if (!r)
		r = send_modules(sender, batch, names, err);
	if (!r)
		r = send_rows(sender, epoch, batch, err);
	*nr_bytes = sender->data.size;
	if (!r)
		return md_pg_run(sender->conn, "COMMIT", NULL, "end a batch", NULL, err);
	if (md_pg_run(sender->conn, "ROLLBACK", NULL, "end a batch", NULL, NULL))
		return -ENOTCONN;
	return r;
}
