// SPDX-License-Identifier: Apache-2.0
/* push_send - the statements of a push; see push_send.h. */
#include "daemon/fleet/push_send.h"

#include <errno.h>
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

static int send_rows(struct md_push_sender *sender, const uint8_t *epoch,
		     const struct mp_fleet_batch *batch, struct mp_err *err)
{
	static const enum md_pg_type types[] = {MD_PG_BYTEA, MD_PG_INT2, MD_PG_INT4,
						MD_PG_INT4,  MD_PG_INT4, MD_PG_INT8,
						MD_PG_BOOL,  MD_PG_INT8, MD_PG_BYTEA};
	static const enum md_pg_type lists[] = {MD_PG_BYTEAS, MD_PG_INT2S, MD_PG_INT4S,
						MD_PG_INT4S,  MD_PG_INT4S, MD_PG_INT8S,
						MD_PG_BOOLS,  MD_PG_INT8S, MD_PG_BYTEAS};
	struct md_pg_array *a = start_arrays(sender, types, 9);
	struct md_pg_params p = {0};
	int r = 0;

	for (size_t i = 0; i < batch->nr_rows; i++) {
		const struct mp_fleet_row *row = &batch->rows[i];
		uint8_t key[MD_MODULE_KEY_MAX];

		md_pg_array_add(&a[0], key, md_module_key(&batch->modules[row->module].id, key));
		md_pg_array_add_number(&a[1], row->kind);
		md_pg_array_add_number(&a[2], row->first_day);
		md_pg_array_add_number(&a[3],
				       row->last_day < INT32_MAX ? row->last_day : INT32_MAX);
		md_pg_array_add_number(&a[4], clamp_day(row->last_day, sender->today));
		md_pg_array_add_number(&a[5], row->chunk);
		md_pg_array_add_number(&a[6], row->exact);
		md_pg_array_add_number(&a[7], (int64_t)row->total);
		md_pg_array_add(&a[8], batch->bytes + row->at, row->size);
	}
	md_pg_add_bytes(&p, MD_PG_BYTEA, epoch, MP_FLEET_EPOCH_BYTES);
	md_pg_add_number(&p, MD_PG_INT8, batch->seq);
	for (int i = 0; i < 9 && !r; i++)
		r = md_pg_add_array(&p, lists[i], &a[i], err);
	if (!r)
		r = md_pg_run(
			sender->conn,
			"SELECT fleet.push_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", &p,
			"send counts", NULL, err);
	return r;
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
