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
 * The numbers of rows, in the order of push_rows(). A row's module is its place in the list of the batch's
 * modules.
 */
enum {
	COLUMN_KIND,
	COLUMN_FIRST_DAY,
	COLUMN_UPTO,
	COLUMN_LAST_DAY,
	COLUMN_CHUNK,
	COLUMN_EXACT,
	COLUMN_TOTAL,
	NR_COLUMNS
};

static int64_t number_of(const struct mp_fleet_row *row, int column, int today)
{
	switch (column) {
	case COLUMN_KIND: return row->kind;
	case COLUMN_FIRST_DAY: return row->first_day;
	case COLUMN_UPTO: return row->last_day < INT32_MAX ? row->last_day : INT32_MAX;
	case COLUMN_LAST_DAY: return clamp_day(row->last_day, today);
	case COLUMN_CHUNK: return row->chunk;
	case COLUMN_EXACT: return row->exact;
	default: return (int64_t)row->total;
	}
}

/*
 * Adds one column as the parameter @p->nr + 1, and its place in the statement to @sql. Most rows of a push
 * are of one kind and one day. A number that all rows have is sent once, and the server repeats it;
 * other numbers are sent with four bytes where these are enough. So a row takes some 30 bytes beside
 * its counts; with complete arrays it would take 95.
 */
static int add_column(struct md_push_sender *sender, struct md_pg_params *p,
		      const struct mp_fleet_batch *batch, int column, FILE *sql, struct mp_err *err)
{
	static const char *const types[NR_COLUMNS] = {"smallint", "integer", "integer", "integer",
						      "bigint",	  "boolean", "bigint"};
	int64_t first = number_of(&batch->rows[0], column, sender->today);
	struct md_pg_array *array = &sender->arrays[2 + column];
	bool same = true, is_short = true;

	for (size_t i = 0; i < batch->nr_rows; i++) {
		int64_t number = number_of(&batch->rows[i], column, sender->today);

		same &= number == first;
		is_short &= number >= INT32_MIN && number <= INT32_MAX;
	}
	if (same) {
		fprintf(sql, ", array_fill($%d::%s, ARRAY[%zu])", p->nr + 1, types[column],
			batch->nr_rows);
		md_pg_add_number(p, is_short ? MD_PG_INT4 : MD_PG_INT8, first);
		return 0;
	}
	fprintf(sql, ", $%d::%s[]", p->nr + 1, types[column]);
	array->type = is_short ? MD_PG_INT4 : MD_PG_INT8;
	md_pg_array_clear(array);
	for (size_t i = 0; i < batch->nr_rows; i++)
		md_pg_array_add_number(array, number_of(&batch->rows[i], column, sender->today));
	return md_pg_add_array(p, is_short ? MD_PG_INT4S : MD_PG_INT8S, array, err);
}

/* Modules and places are the parameters 3 and 4, data the last one. */
static int add_columns(struct md_push_sender *sender, struct md_pg_params *p,
		       const struct mp_fleet_batch *batch, FILE *sql, struct mp_err *err)
{
	static const enum md_pg_type types[] = {MD_PG_BYTEA, MD_PG_INT2};
	struct md_pg_array *a = start_arrays(sender, types, 2), *data = &sender->arrays[9];
	uint8_t key[MD_MODULE_KEY_MAX];
	int r;

	data->type = MD_PG_BYTEA;
	md_pg_array_clear(data);
	for (size_t i = 0; i < batch->nr_modules; i++)
		md_pg_array_add(&a[0], key, md_module_key(&batch->modules[i].id, key));
	for (size_t i = 0; i < batch->nr_rows; i++) {
		md_pg_array_add_number(&a[1], batch->rows[i].module + 1);
		md_pg_array_add(data, batch->bytes + batch->rows[i].at, batch->rows[i].size);
	}
	fputs("SELECT fleet.push_rows($1, $2, ARRAY(SELECT ($3::bytea[])[u.place] FROM"
	      " unnest($4::smallint[]) WITH ORDINALITY AS u(place, row) ORDER BY u.row)",
	      sql);
	r = md_pg_add_array(p, MD_PG_BYTEAS, &a[0], err);
	if (!r)
		r = md_pg_add_array(p, MD_PG_INT2S, &a[1], err);
	for (int column = 0; column < NR_COLUMNS && !r; column++)
		r = add_column(sender, p, batch, column, sql, err);
	fprintf(sql, ", $%d)", p->nr + 1);
	return r ? r : md_pg_add_array(p, MD_PG_BYTEAS, data, err);
}

static int send_rows(struct md_push_sender *sender, const uint8_t *epoch,
		     const struct mp_fleet_batch *batch, struct mp_err *err)
{
	struct md_pg_params p = {0};
	char statement[1024] = "";
	FILE *sql = fmemopen(statement, sizeof(statement), "w");
	int r;

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
		 struct mp_err *err)
{
	int r = md_pg_run(sender->conn, "BEGIN", NULL, "begin a batch", NULL, err);

	if (r)
		return r;
	r = begin_batch(sender->conn, epoch, batch, err);
	if (!r)
		r = send_modules(sender, batch, names, err);
	if (!r)
		r = send_rows(sender, epoch, batch, err);
	if (!r)
		return md_pg_run(sender->conn, "COMMIT", NULL, "end a batch", NULL, err);
	if (md_pg_run(sender->conn, "ROLLBACK", NULL, "end a batch", NULL, NULL))
		return -ENOTCONN;
	return r;
}
