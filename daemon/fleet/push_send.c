// SPDX-License-Identifier: Apache-2.0
/* push_send - the statements of a push; see push_send.h. */
#include "daemon/fleet/push_send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"

/* The server takes days of the last 400, and no later one than its own. */
#define DAYS_BACK 399

void md_push_sender_fini(struct md_push_sender *sender)
{
	for (size_t i = 0; i < MD_PUSH_COLUMNS; i++)
		free(sender->columns[i].bytes);
	free(sender->keys.bytes);
	free(sender->names.bytes);
	free(sender->data.bytes);
	free(sender->sizes);
	md_packer_fini(&sender->packer);
	PQfinish(sender->conn);
	memset(sender, 0, sizeof(*sender));
}

/* ---- what the server has ------------------------------------------------------------------- */

int md_push_today(struct md_push_sender *sender, struct mp_err *err)
{
	PGresult *result;
	int r = md_pg_run(sender->conn, "ask for the server's day", &result, err,
			  "SELECT fleet.today()", "");

	if (!r)
		sender->today = atoi(md_pg_text(result, 0));
	PQclear(result);
	return r;
}

int md_push_ask_epoch(struct md_push_sender *sender, const uint8_t *name, bool *has, int64_t *seq,
		      int64_t *token, struct mp_err *err)
{
	PGresult *result;
	int r = md_pg_run(sender->conn, "ask what the server has", &result, err,
			  "SELECT seq, token FROM fleet.epoch($1)", "b", name,
			  (size_t)MP_FLEET_EPOCH_BYTES);

	*has = !r && PQntuples(result);
	if (*has) {
		*seq = strtoll(md_pg_text(result, 0), NULL, 10);
		*token = strtoll(md_pg_text(result, 1), NULL, 10);
		if (*seq <= 0 || *seq >= INT64_MAX / 2 || *token <= 0)
			r = mp_err_set(err, EPROTO, "the server has an impossible epoch");
	}
	PQclear(result);
	return r;
}

/* ---- numbers ------------------------------------------------------------------------------- */

/*
 * Days are what the host's clock said. The server has its own clock: a day that this host has too early
 * or too late is called the nearest one that the server takes.
 */
static int64_t clamp_day(int64_t day, int today)
{
	return day > today ? today : day < today - DAYS_BACK ? today - DAYS_BACK : day;
}

/*
 * The numbers of rows, in the order of push_rows(), and of modules. A row's module is its place in the list of the batch's
 * modules.
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
	COLUMN_SIZE, /* of the data */
	COLUMN_KEY_SIZE,
	COLUMN_MODULE_KIND,
	COLUMN_TEXT_SIZE
};
_Static_assert(COLUMN_TEXT_SIZE + 1 == MD_PUSH_COLUMNS, "columns");

static int64_t number_of(const struct md_push_sender *sender, const struct mp_fleet_batch *batch,
			 size_t i, int column)
{
	const struct mp_fleet_row *row = &batch->rows[i];
	const struct mp_module *m = &batch->modules[i];

	switch (column) {
	case COLUMN_MODULE: return row->module + 1;
	case COLUMN_KIND: return row->kind;
	case COLUMN_FIRST_DAY: return row->first_day;
	case COLUMN_UPTO: return row->last_day < INT32_MAX ? row->last_day : INT32_MAX;
	case COLUMN_LAST_DAY: return clamp_day(row->last_day, sender->today);
	case COLUMN_CHUNK: return row->chunk;
	case COLUMN_EXACT: return row->exact;
	case COLUMN_TOTAL: return (int64_t)row->total;
	case COLUMN_SIZE: return sender->sizes[i];
	case COLUMN_KEY_SIZE: return 8 + m->id.build_id_len;
	case COLUMN_MODULE_KIND: return m->kind;
	default: return (int64_t)m->text_size;
	}
}

/* A statement that is being written, with its parameters. */
struct statement {
	struct md_push_sender *sender;
	const struct mp_fleet_batch *batch;
	struct md_pg_params params;
	FILE *sql;
};

/*
 * Adds one column as the next parameter, and prints the expression that makes it an array again. Most
 * rows of a push are of one kind and one day: a number that all rows have is sent once. Other numbers have as
 * many bytes as the largest one needs. So a row takes some 9 bytes beside its counts; with arrays of
 * PostgreSQL it would take 95.
 */
static void add_column(struct statement *s, int column)
{
	struct mp_varint_writer *bytes = &s->sender->columns[column];
	size_t nr = column < COLUMN_KEY_SIZE ? s->batch->nr_rows : s->batch->nr_modules, width = 1;
	int64_t first = number_of(s->sender, s->batch, 0, column);
	uint64_t all = 0;
	bool same = true;

	for (size_t i = 0; i < nr; i++) {
		same &= number_of(s->sender, s->batch, i, column) == first;
		all |= (uint64_t)number_of(s->sender, s->batch, i, column);
	}
	if (same) {
		fprintf(s->sql, "array_fill($%d::bigint,ARRAY[%zu])", s->params.nr + 1, nr);
		md_pg_add(&s->params, "i", first);
		return;
	}
	while (width < 8 && all >> 8 * width)
		width++;
	bytes->size = 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t number =
			__builtin_bswap64((uint64_t)number_of(s->sender, s->batch, i, column));

		mp_varint_put_bytes(bytes, (const char *)&number + 8 - width, width);
	}
	fprintf(s->sql, "fleet.numbers($%d,%zu)", s->params.nr + 1, width);
	md_pg_add(&s->params, "b", bytes->bytes, bytes->size);
}

/* Adds pieces of bytes, whose sizes are a column. */
static void add_pieces(struct statement *s, int column, const struct mp_varint_writer *bytes)
{
	fputs("fleet.slices(", s->sql);
	add_column(s, column);
	fprintf(s->sql, ",$%d)", s->params.nr + 1);
	md_pg_add(&s->params, "b", bytes->bytes, bytes->size);
}

/* ---- batch --------------------------------------------------------------------------------- */

/* Joins the keys of all modules, and their names, each behind an end of line. "" is no name. */
static void join_modules(struct md_push_sender *sender, const struct mp_fleet_batch *batch,
			 const struct md_file_names *names)
{
	sender->keys.size = sender->names.size = 0;
	for (size_t i = 0; i < batch->nr_modules; i++) {
		uint8_t key[MD_MODULE_KEY_MAX];
		char buf[MD_NAME_SIZE];
		const char *name = md_file_name(names, batch->modules[i].path, buf);

		mp_varint_put_bytes(&sender->keys, key, md_module_key(&batch->modules[i].id, key));
		mp_varint_put_bytes(&sender->names, "\n", 1);
		if (name)
			mp_varint_put_bytes(&sender->names, name, strlen(name));
	}
	mp_varint_put_bytes(&sender->names, "", 1);
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

static void write_modules(struct statement *s)
{
	fputs("SELECT fleet.push_modules(", s->sql);
	add_pieces(s, COLUMN_KEY_SIZE, &s->sender->keys);
	fputc(',', s->sql);
	add_column(s, COLUMN_MODULE_KIND);
	fputs("::smallint[],", s->sql);
	add_column(s, COLUMN_TEXT_SIZE);
	fprintf(s->sql, ",(string_to_array($%d,E'\\n',''))[2:])", s->params.nr + 1);
	md_pg_add(&s->params, "t", s->sender->names.bytes);
}

static void write_rows(struct statement *s, const uint8_t *epoch)
{
	/* No cast leads from a bigint to a boolean. */
	static const char *const casts[] = {[COLUMN_KIND] = "::smallint[]",
					    [COLUMN_FIRST_DAY] = "::int[]",
					    [COLUMN_UPTO] = "::int[]",
					    [COLUMN_LAST_DAY] = "::int[]",
					    [COLUMN_CHUNK] = "",
					    [COLUMN_EXACT] = "::int[]::boolean[]",
					    [COLUMN_TOTAL] = ""};

	md_pg_add(&s->params, "bi", epoch, (size_t)MP_FLEET_EPOCH_BYTES, s->batch->seq);
	fputs("SELECT fleet.push_rows($1,$2,fleet.pick(", s->sql);
	add_pieces(s, COLUMN_KEY_SIZE, &s->sender->keys);
	fputc(',', s->sql);
	add_column(s, COLUMN_MODULE);
	fputs("),", s->sql);
	for (int column = COLUMN_KIND; column < COLUMN_SIZE; column++) {
		add_column(s, column);
		fprintf(s->sql, "%s,", casts[column]);
	}
	add_pieces(s, COLUMN_SIZE, &s->sender->data);
	fputc(')', s->sql);
}

/* Sends the batch's modules, or its rows if @epoch is given. */
static int send_part(struct md_push_sender *sender, const struct mp_fleet_batch *batch,
		     const uint8_t *epoch, struct mp_err *err)
{
	struct statement s = {.sender = sender, .batch = batch};
	char statement[1024] = "";
	bool failed = sender->keys.failed || sender->names.failed || sender->data.failed;

	s.sql = fmemopen(statement, sizeof(statement), "w");
	if (!s.sql)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (epoch)
		write_rows(&s, epoch);
	else
		write_modules(&s);
	for (int i = 0; i < MD_PUSH_COLUMNS; i++)
		failed |= sender->columns[i].failed;
	if (fclose(s.sql) || failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	return md_pg_run_with(sender->conn, epoch ? "send counts" : "send modules", NULL, err,
			      statement, &s.params);
}

struct sending {
	struct md_push_sender *sender;
	const uint8_t *epoch;
	const struct mp_fleet_batch *batch;
};

static int send_all(PGconn *conn, void *arg, struct mp_err *err)
{
	const struct sending *s = arg;
	int r = md_pg_run(conn, "begin a batch", NULL, err, "SELECT fleet.batch($1, $2, $3, $4)",
			  "biii", s->epoch, (size_t)MP_FLEET_EPOCH_BYTES, s->batch->previous,
			  s->batch->token, s->batch->seq);

	if (!r)
		r = send_part(s->sender, s->batch, NULL, err);
	return r ? r : send_part(s->sender, s->batch, s->epoch, err);
}

int md_push_send(struct md_push_sender *sender, const uint8_t *epoch,
		 const struct mp_fleet_batch *batch, const struct md_file_names *names,
		 size_t *nr_bytes, struct mp_err *err)
{
	struct sending sending = {sender, epoch, batch};
	int r = join_data(sender, batch, err);

	join_modules(sender, batch, names);
	*nr_bytes = sender->data.size;
	return r ? r : md_pg_transaction(sender->conn, send_all, &sending, "send a batch", err);
}
